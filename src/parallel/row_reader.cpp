#include "octavo/parallel/row_reader.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "octavo/base/error.h"

namespace octavo {
namespace {

enum Field { kKind, kParameter, kFirstRow, kElements, kNumFields };
constexpr std::int64_t kEnd = -1;

}  // namespace

void RowReader::read(StoredValues values, const Parameter& parameter, std::int64_t first_row, std::span<double> rows) {
  const auto all = store_.table().parameters();
  const std::int64_t fields[kNumFields] = {static_cast<std::int64_t>(values), &parameter - all.data(), first_row,
                                           static_cast<std::int64_t>(rows.size())};
  internal_check(fields[kParameter] >= 0 && fields[kParameter] < static_cast<std::int64_t>(all.size()),
                 "[parallel] rows of a parameter that is not the table's");
  at::Tensor request = at::empty({kNumFields}, at::kLong);
  std::copy(fields, fields + kNumFields, request.data_ptr<std::int64_t>());
  exchange(request, rows);
}

void RowReader::finish() {
  exchange(at::full({kNumFields}, kEnd, at::kLong), {});
}

void RowReader::serve() {
  while (exchange(at::empty({kNumFields}, at::kLong), {})) {
  }
}

bool RowReader::exchange(at::Tensor request, std::span<double> rows) {
  ranks_.broadcast(request, 0, Purpose::Control).wait();
  const std::int64_t* field = request.const_data_ptr<std::int64_t>();
  if (field[kKind] == kEnd) return false;
  const at::Tensor values = at::zeros({field[kElements]}, at::kDouble);
  const std::span<double> here(values.data_ptr<double>(), static_cast<std::size_t>(field[kElements]));
  const bool weights = field[kKind] == static_cast<std::int64_t>(StoredValues::Weights);
  store_.read_primary_rows(weights ? store_.weights() : store_.gradients(),
                           store_.table().parameters()[field[kParameter]], field[kFirstRow], here);
  ranks_.reduce(values, 0, Purpose::Control).wait();
  if (ranks_.index() == 0) std::copy(here.begin(), here.end(), rows.begin());
  return true;
}

}  // namespace octavo
