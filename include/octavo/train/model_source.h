// Where a model's weights come from: a Hugging Face folder, or a config.json and a seed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "octavo/checkpoint/model_folder.h"
#include "octavo/comm/communicator.h"
#include "octavo/parallel/param_store.h"

namespace octavo {

class ModelSource {
 public:
  /// A folder is opened with its weights, whose values are checked; a file is a config.json, and weights are drawn from
  /// `seed`. Throws UsageError for whatever is wrong with either.
  ModelSource(const std::filesystem::path& path, std::uint64_t seed);

  const ModelSpec& spec() const { return folder_ ? folder_->spec() : spec_; }
  bool has_weights() const { return folder_ != nullptr; }

  /// The folder that the weights came from; empty if they came from the seed.
  std::filesystem::path folder() const { return folder_ ? folder_->path() : std::filesystem::path(); }

  /// What ParamStore::load() asks for; may be called by several threads at once. This must outlive it.
  ParamStore::RowSource rows() const;

 private:
  std::unique_ptr<ModelFolder> folder_;  // null: from the seed
  ModelSpec spec_;
  std::uint64_t seed_;
};

/// Writes the weights as a Hugging Face folder: bfloat16 if they are computed in it, else float32. Tokenizer files go
/// along from the folder that the model came from. Collective over `world`, all ranks: index 0 writes, and brings the
/// rows from the ranks that hold them. Throws UsageError on index 0 for a folder that cannot be written.
void save_model(const std::filesystem::path& folder, const ModelSource& source, const ParamStore& store,
                Communicator& world);

}  // namespace octavo
