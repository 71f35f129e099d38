#pragma once
/// The tables of the *_table.cpp files; null where the build is for another architecture. Internal.

#include "gossamer/kernels/kernel_table.h"

namespace gossamer {

extern const KernelTable<float>* const kAvx2Floats;
extern const KernelTable<double>* const kAvx2Doubles;
extern const CopyFunction kAvx2Copy;
extern const RoundingKernels kAvx2Rounding;
extern const KernelTable<float>* const kAvx512Floats;
extern const KernelTable<double>* const kAvx512Doubles;
extern const CopyFunction kAvx512Copy;
extern const RoundingKernels kAvx512Rounding;

}  // namespace gossamer
