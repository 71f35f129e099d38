#pragma once
/// The kernels of one instruction set as a table of functions: what dispatch chooses and tests
/// call. Internal: users call the functions of mix_*.h, sum.h, norm.h, finite.h, codec.h and
/// copy.h.

#include <cstddef>
#include <iterator>

#include "gossamer/base/codec.h"
#include "gossamer/kernels/isa.h"
#include "gossamer/kernels/mix.h"

namespace gossamer {

/// Elements [begin, end) of the buffers; at most kBlockElements where a sum is returned. Begins at
/// a tile where there are digests.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// The mix as the kernels take it. Plain pointers: the files compiled for an instruction set must
/// not emit inline functions that the linker could pick for code that runs elsewhere.
template <class T>
struct MixArgs {
  const T* x = nullptr;
  T* out = nullptr;  ///< where the new x goes: x itself, or apart from all that is read
  double self_weight = 1;
  const Source<T>* sources = nullptr;
  std::size_t source_count = 0;
  bool measure_distance = false;
  const Digest* digests = nullptr;  ///< of the whole first source; null: none
};

/// The coefficients of a step, in the precision of T. The step itself is added: lr is negated.
template <class T>
struct SgdArgs {
  const T* g = nullptr;
  T grad_scale = 1;
  T minus_lr = 0;
  T weight_decay = 0;
};

template <class T>
struct MomentumArgs {
  const T* g = nullptr;
  T* buf = nullptr;
  T grad_scale = 1;
  T minus_lr = 0;
  T momentum = 0;
  T one_minus_dampening = 1;
  T weight_decay = 0;
  bool nesterov = false;
  bool first_step = false;
};

template <class T>
struct AdamArgs {
  const T* g = nullptr;
  T* m = nullptr;
  T* v = nullptr;
  T grad_scale = 1;
  T beta1 = 0;
  T beta2 = 0;
  T one_minus_beta1 = 1;
  T one_minus_beta2 = 1;
  T minus_step = 0;       ///< −lr/(1−β₁ᵗ)
  T root_correction = 1;  ///< 1/√(1−β₂ᵗ)
  T noise = 1;            ///< v takes up noise·g² + signal·m²
  T signal = 0;
  T eps = 0;
  T coupled_decay = 0;  ///< weight_decay unless decoupled
  T minus_decay = 0;    ///< −lr·weight_decay if decoupled
};

/// Which of the buffers a step of AccumAdam writes.
enum class AccumPhase { first, middle, last, only };

template <class T>
struct AccumAdamArgs {
  AdamArgs<T> adam;
  T* b = nullptr;
  T inverse_period = 1;
  AccumPhase phase = AccumPhase::only;
};

template <class T>
struct SumArgs {
  T* into = nullptr;
  const T* const* terms = nullptr;
  std::size_t term_count = 0;
  T scale = 1;
};

/// EncodeArgs (codec.h) as the kernels take them.
template <class T>
struct Encoding {
  const T* x = nullptr;
  std::size_t count = 0;
  unsigned char* coded = nullptr;
  T* kept = nullptr;
  T own = 1;
  T keep = 0;
  T* error = nullptr;
};

/// Elements [offset, offset + count) of a coded vector, written to or added to `into`.
template <class T>
struct Decoding {
  const unsigned char* coded = nullptr;
  std::size_t offset = 0;
  T* into = nullptr;
  std::size_t count = 0;
};

/// What a codec does.
template <class T>
struct CodecKernels {
  void (*encode)(const Encoding<T>&) = nullptr;
  void (*decode)(const Decoding<T>&) = nullptr;
  void (*decode_add)(const Decoding<T>&) = nullptr;
};

template <class T>
struct KernelTable {
  double (*mix_only)(Range, const MixArgs<T>&);
  double (*mix_sgd)(Range, const MixArgs<T>&, const SgdArgs<T>&);
  double (*mix_momentum)(Range, const MixArgs<T>&, const MomentumArgs<T>&);
  double (*mix_adam)(Range, const MixArgs<T>&, const AdamArgs<T>&);
  double (*mix_accum_adam)(Range, const MixArgs<T>&, const AccumAdamArgs<T>&);
  void (*copy_digested)(Range, const T* x, T* to, Digest* digests);
  void (*sum_into)(Range, const SumArgs<T>&);
  double (*sum_squares)(Range, const T* a);
  double (*distance_squares)(Range, const T* a, const T* b);
  bool (*all_finite)(Range, const T* a);
  CodecKernels<T> codecs[std::size(kCodecs)];  ///< by codec; fp32 has none, it is a copy
};

/// Whether every codec has its coding. For a test: the addresses of functions are no constants
/// under a sanitizer.
template <class T>
bool has_all_codecs(const KernelTable<T>& table) {
  for (const Codec codec : kLossyCodecs) {
    const CodecKernels<T>& passes = table.codecs[static_cast<std::size_t>(codec)];
    const bool is_whole = passes.encode != nullptr && passes.decode != nullptr;
    if (!is_whole || passes.decode_add == nullptr) return false;
  }
  return true;
}

/// One block of round_at_random(): fewer than 2³² elements, and the two words of its key.
struct Rounding {
  const float* x;
  unsigned short* to;
  std::size_t count;
  unsigned first;
  unsigned second;
};

/// By format.
struct RoundingKernels {
  void (*bf16)(const Rounding&);
  void (*fp16)(const Rounding&);
};

using CopyFunction = void (*)(void* destination, const void* source, std::size_t bytes);

/// Throws std::invalid_argument when this machine does not support `isa`.
template <class T>
const KernelTable<T>& kernel_table(Isa isa);
template <>
const KernelTable<float>& kernel_table<float>(Isa isa);
template <>
const KernelTable<double>& kernel_table<double>(Isa isa);
CopyFunction copy_function(Isa isa);
const RoundingKernels& rounding_kernels(Isa isa);

/// kernel_table of active_isa().
template <class T>
const KernelTable<T>& active_kernels();

}  // namespace gossamer
