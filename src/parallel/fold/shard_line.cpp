#include "parallel/fold/shard_line.h"

#include <ATen/ATen.h>

#include <utility>

#include "octavo/base/error.h"
#include "octavo/comm/without_memory.h"

namespace octavo {

std::shared_ptr<TravellingRows> ShardLine::borrow(at::IntArrayRef sizes, const at::TensorOptions& options, int source) {
  auto rows = std::make_shared<TravellingRows>();
  rows->rows = without_memory(sizes, options);
  rows->arriving = fold_.borrow(rows->rows, source, Purpose::Weights);
  coming_.push_back(rows);
  return rows;
}

void ShardLine::lend(std::shared_ptr<TravellingRows> rows, int reader) {
  to_lend_.push_back({std::move(rows), reader});
  lend_what_is_here();
}

void ShardLine::arrive(const TravellingRows& rows) {
  while (!rows.is_here) {
    internal_check(!coming_.empty(), "[parallel] rows are waited for that nobody asked for");
    coming_.front()->arriving.wait();
    coming_.front()->is_here = true;
    coming_.pop_front();
    // Before the next wait: what all ranks wait for now may hang on what each of them has just got.
    lend_what_is_here();
  }
}

void ShardLine::lend_what_is_here() {
  for (; !to_lend_.empty() && to_lend_.front().rows->is_here; to_lend_.pop_front()) {
    TravellingRows& rows = *to_lend_.front().rows;
    rows.lent = fold_.lend(rows.rows, to_lend_.front().reader, Purpose::Weights);
    rows.is_lent = true;
  }
}

}  // namespace octavo
