// A model in Hugging Face form: config.json beside model.safetensors, or beside shards and their index.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "octavo/checkpoint/safetensors.h"
#include "octavo/spec/model_spec.h"

namespace octavo {

/// An opened folder whose files hold exactly the parameters of its config.json. Weights are mapped, not copied.
class ModelFolder {
 public:
  /// Opens and checks everything but the values. Throws UsageError, one line that names the file at fault: a config
  /// that read_model_spec() refuses; no weights; an index that is not valid, leaves the folder, or disagrees with its
  /// shards; a file that SafetensorsFile refuses; a parameter that is missing, unknown, not floating point, or of
  /// another shape. Old rotary_emb.inv_freq buffers are ignored; the head of a model with tied embeddings may be
  /// there if its values are the embedding's.
  explicit ModelFolder(const std::filesystem::path& folder);

  const std::filesystem::path& path() const { return path_; }
  const ModelSpec& spec() const { return spec_; }

  /// How a parameter of spec() lies in its file: type and shape. Throws InternalError for another name.
  const StoredTensor& stored(const std::string& parameter) const;

  /// Elements [first, first + out.size()) of a parameter, row-major, converted. Throws InternalError for another name
  /// or a range beyond the parameter. May be called by several threads at once.
  void read_as_float(const std::string& parameter, std::int64_t first, std::span<float> out) const;
  void read_as_double(const std::string& parameter, std::int64_t first, std::span<double> out) const;

  /// Reads every value. Throws UsageError for the first NaN or infinity, with parameter and element.
  void check_weights() const;

 private:
  void check_tensors() const;
  void check_tied_head() const;
  const SafetensorsFile& file_of(const std::string& parameter) const;

  std::filesystem::path path_;
  ModelSpec spec_;
  std::filesystem::path listing_;  // the file that says which tensors there are
  std::vector<SafetensorsFile> files_;
  std::map<std::string, std::size_t> place_;  // tensor -> place in files_
};

/// Throws UsageError unless write_model_folder() may put a model there: nothing, an empty folder, or a model folder.
/// For asking before the hours of work that lead up to it.
void check_model_target(const std::filesystem::path& folder);

/// Fills `out` with the elements [first, first + out.size()) of `parameter`, row-major. Whole rows.
using ReadElements = std::function<void(const ParameterSpec& parameter, std::int64_t first, std::span<float> out)>;

struct WriteModelOptions {
  StorageType type = StorageType::F32;    // of every parameter: F32 or BF16
  Bytes max_shard_bytes = 5'000'000'000;  // of tensor data in a file; more than that makes shards and an index
  std::filesystem::path carry_from = {};  // a folder whose tokenizer files go along; empty: none
};

/// Writes `spec` and its parameters as a folder that ModelFolder and transformers load. config.json is
/// spec.config_json, key by key, with the dtype put right. `read` is asked for each parameter from front to back, in
/// the order of parameters(spec), a few megabytes at a time. The folder appears under its name when it is complete;
/// on any error what was there stays. Throws UsageError if `folder` exists and is not empty, unless it is a model
/// folder: config.json, weights, index, and tokenizer files, which are carried over. Lets through what `read` throws.
void write_model_folder(const std::filesystem::path& folder, const ModelSpec& spec, const ReadElements& read,
                        const WriteModelOptions& options = {});

}  // namespace octavo
