// Rows of parameters as the checkpoint orders them, brought to rank 0 from the ranks that hold them: for saving and for
// proofs.
#pragma once

#include <cstdint>
#include <span>

#include "octavo/comm/communicator.h"
#include "octavo/parallel/param_store.h"

namespace octavo {

enum class StoredValues { Weights, Gradients };

/// Index 0 of `ranks` reads while all others serve. Elements come from the rank that is primary for them, so nobody
/// else's copy is looked at. Traffic: a broadcast of the request and a reduce of the rows in float64, purpose control.
class RowReader {
 public:
  /// Both must outlive this.
  RowReader(const ParamStore& store, Communicator& ranks) : store_(store), ranks_(ranks) {}

  /// On index 0: rows [first_row, first_row + rows.size() / columns) of the checkpoint matrix. Throws CommError if a
  /// rank is lost.
  void read(StoredValues values, const Parameter& parameter, std::int64_t first_row, std::span<double> rows);
  /// On index 0, once, after the last read(): lets the others go.
  void finish();
  /// On the others: answers until index 0 has finished.
  void serve();

 private:
  /// Whether there was a request; false after finish(). `rows`: on index 0 the place of the result.
  bool exchange(at::Tensor request, std::span<double> rows);

  const ParamStore& store_;
  Communicator& ranks_;
};

}  // namespace octavo
