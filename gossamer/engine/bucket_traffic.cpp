#include "gossamer/engine/bucket_traffic.h"

#include "gossamer/engine/elements.h"

namespace gossamer {

const std::byte* Arrived::at(std::size_t payload, const Slice& slice) const {
  return elements::address(dtype, buffers[payload][gossamer::at(slice.buffer)], slice.offset);
}

double mean_norm_squared(const Arrived& arrived, WorkerPool* pool) {
  double sum = 0;
  for (const Piece& piece : arrived.pieces) {
    const Slice own{0, piece.offset, piece.count};
    const std::byte* const mean = arrived.at(0, piece.terms.empty() ? own : piece.terms[0].slice);
    sum += elements::norm_squared(arrived.dtype, mean, piece.count, pool);
  }
  return sum;
}

}  // namespace gossamer
