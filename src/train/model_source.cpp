#include "octavo/train/model_source.h"

#include <algorithm>
#include <vector>

#include "octavo/layout/initial_weights.h"

namespace octavo {

ModelSource::ModelSource(const std::filesystem::path& path, std::uint64_t seed) : seed_(seed) {
  if (std::filesystem::is_directory(path)) {
    folder_ = std::make_unique<ModelFolder>(path);
    folder_->check_weights();
  } else {
    spec_ = read_model_spec(path);
  }
}

ParamStore::RowSource ModelSource::rows() const {
  return [this](const Parameter& parameter, std::int64_t first_row, std::span<double> rows) {
    if (folder_) {
      folder_->read_as_double(parameter.name, first_row * parameter.matrix_columns(), rows);
      return;
    }
    std::vector<float> drawn(rows.size());
    fill_initial_rows(parameter, seed_, first_row, drawn);
    std::copy(drawn.begin(), drawn.end(), rows.begin());
  };
}

void save_model(const std::filesystem::path& folder, const ModelSpec& spec, const ParamStore& store) {
  std::vector<double> rows;
  const auto read = [&](const ParameterSpec& wanted, std::int64_t first, std::span<float> out) {
    const Parameter& parameter = store.table().parameter(wanted.name);
    rows.resize(out.size());
    store.read_rows(store.weights(), parameter, first / parameter.matrix_columns(), rows);
    std::copy(rows.begin(), rows.end(), out.begin());
  };
  const bool narrow = store.compute_type() == ElementType::BFloat16;
  write_model_folder(folder, spec, read, {.type = narrow ? StorageType::BF16 : StorageType::F32});
}

}  // namespace octavo
