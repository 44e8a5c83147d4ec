#include "octavo/train/model_source.h"

#include <algorithm>
#include <vector>

#include "octavo/layout/initial_weights.h"
#include "octavo/parallel/row_reader.h"

namespace octavo {

ModelSource::ModelSource(const std::filesystem::path& path, std::uint64_t seed) : seed_(seed) {
  std::error_code error;  // whatever keeps the path from being looked at, the reader of the config will name
  if (std::filesystem::is_directory(path, error)) {
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

void save_model(const std::filesystem::path& folder, const ModelSource& source, const ParamStore& store,
                Communicator& world) {
  RowReader reader(store, world);
  if (world.index() != 0) return reader.serve();
  std::vector<double> rows;
  const auto read = [&](const ParameterSpec& wanted, std::int64_t first, std::span<float> out) {
    const Parameter& parameter = store.table().parameter(wanted.name);
    rows.resize(out.size());
    reader.read(StoredValues::Weights, parameter, first / parameter.matrix_columns(), rows);
    std::copy(rows.begin(), rows.end(), out.begin());
  };
  const bool narrow = store.compute_type() == ElementType::BFloat16;
  WriteModelOptions options;
  options.type = narrow ? StorageType::BF16 : StorageType::F32;
  options.carry_from = source.folder();
  write_model_folder(folder, source.spec(), read, options);
  reader.finish();
}

}  // namespace octavo
