#include "octavo/checkpoint/model_folder.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string_view>

#include "checkpoint/safetensors_header.h"
#include "checkpoint/shard_index.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/spec/parameters.h"

namespace octavo {
namespace {

constexpr const char* kHead = "lm_head.weight";

// "[3, 0]": where element `index` stands in a tensor of this shape.
std::string element_text(std::int64_t index, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> place(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    place[i] = index % shape[i];
    index /= shape[i];
  }
  return shape_text(place);
}

// The layer in "model.layers.12.mlp.up_proj.weight", where names begin with "model."; nullopt for a name of another
// form.
std::optional<std::size_t> layer_of(std::string_view name, const std::string& names_begin) {
  const std::string prefix = names_begin + "layers.";
  if (!name.starts_with(prefix)) return std::nullopt;
  std::size_t layer = 0, i = prefix.size();
  for (; i < name.size() && name[i] >= '0' && name[i] <= '9'; ++i) {
    layer = std::min<std::size_t>(1'000'000'000, 10 * layer + static_cast<std::size_t>(name[i] - '0'));
  }
  if (i == prefix.size() || i == name.size() || name[i] != '.') return std::nullopt;
  return layer;
}

// A buffer that old Llama files hold and nobody reads.
bool is_rotary_buffer(std::string_view name) {
  return name.ends_with(".rotary_emb.inv_freq");
}

// What stands beside a text model in its file: its vision tower, and blocks for multi-token prediction.
bool is_beside(std::string_view name, const ModelSpec& model) {
  const bool sees = model.form.prefix != CheckpointForm().prefix;
  return (sees && name.starts_with("model.visual.")) || (model.form.may_have_mtp && name.starts_with("mtp."));
}

void check_shape(const StoredTensor& tensor, const std::vector<std::int64_t>& expected, const std::string& where) {
  if (tensor.shape == expected) return;
  std::vector<std::int64_t> reversed(expected.rbegin(), expected.rend());
  const char* hint = tensor.shape == reversed ? "it is transposed; store linear weights as [out, in]"
                                              : "correct config.json or the file";
  throw UsageError(cat(where, ": ", tensor.name, " has shape ", shape_text(tensor.shape), "; config.json asks for ",
                       shape_text(expected), "; ", hint));
}

void check_type(const StoredTensor& tensor, const std::string& where) {
  if (is_weight_type(tensor.type)) return;
  throw UsageError(cat(where, ": ", tensor.name, " has dtype ", storage_type_name(tensor.type),
                       "; weights must be F64, F32, F16 or BF16"));
}

}  // namespace

ModelFolder::ModelFolder(const std::filesystem::path& folder) : path_(folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    throw UsageError(cat("[checkpoint] ", folder.string(), ": is not a folder; give a Hugging Face model folder"));
  }
  spec_ = read_model_spec(folder);

  const bool single = std::filesystem::exists(folder / kSingleFile, error);
  const bool sharded = std::filesystem::exists(folder / kIndexFile, error);
  if (single == sharded) {
    throw UsageError(cat("[checkpoint] ", folder.string(), ": holds ", single ? "both " : "neither ", kSingleFile,
                         single ? " and " : " nor ", kIndexFile, "; one of them must be there"));
  }
  listing_ = folder / (single ? kSingleFile : kIndexFile);
  const std::string where = cat("[checkpoint] ", listing_.string());
  std::map<std::string, std::string> weight_map;
  std::set<std::string> names = {kSingleFile};
  if (sharded) {
    weight_map = read_shard_index(listing_);
    names.clear();
    for (const auto& [tensor, file] : weight_map) names.insert(file);
  }
  for (const std::string& name : names) {
    if (sharded && !std::filesystem::exists(folder / name, error)) {
      throw UsageError(cat(where, ": names ", in_quotes(name), ", which does not exist; fetch the file"));
    }
    files_.emplace_back(folder / name);
    for (const StoredTensor& tensor : files_.back().tensors()) {
      const auto mapped = weight_map.find(tensor.name);
      if (sharded && (mapped == weight_map.end() || mapped->second != name)) {
        throw UsageError(
            cat(where, ": ", in_quotes(name), " holds ", in_quotes(tensor.name), ", which the index ",
                mapped == weight_map.end() ? "does not list" : cat("puts into ", in_quotes(mapped->second)),
                "; correct the index"));
      }
      place_.emplace(tensor.name, files_.size() - 1);
    }
  }
  for (const auto& [tensor, file] : weight_map) {
    if (!place_.contains(tensor)) {
      throw UsageError(cat(where, ": puts ", in_quotes(tensor), " into ", in_quotes(file),
                           ", which does not hold it; correct the index"));
    }
  }
  check_tensors();
  check_tied_head();
}

void ModelFolder::check_tensors() const {
  std::set<std::string> expected;
  for (const ParameterSpec& parameter : parameters(spec_)) {
    expected.insert(parameter.name);
    if (!place_.contains(parameter.name)) {
      const char* reason = parameter.name == kHead ? " and tie_word_embeddings is not true" : "";
      throw UsageError(cat("[checkpoint] ", listing_.string(), ": ", parameter.name, " is missing", reason,
                           "; the files must hold every parameter of config.json"));
    }
    const SafetensorsFile& file = file_of(parameter.name);
    const std::string where = cat("[checkpoint] ", file.path().string());
    check_type(*file.find(parameter.name), where);
    check_shape(*file.find(parameter.name), parameter.shape, where);
  }
  for (const auto& [name, place] : place_) {
    if (expected.contains(name) || (spec_.tied_embeddings && name == kHead)) continue;
    const std::string where = cat("[checkpoint] ", files_[place].path().string(), ": ", in_quotes(name));
    const std::optional<std::size_t> layer = layer_of(name, spec_.form.prefix);
    if (layer && *layer >= spec_.layers.size()) {
      throw UsageError(cat(where, " is in the file, but num_hidden_layers is ", spec_.layers.size(),
                           "; correct config.json or the file"));
    }
    if (is_rotary_buffer(name) || is_beside(name, spec_)) continue;
    throw UsageError(cat(where, " belongs to no part of this ", spec_.model_type, " model; remove it from the file"));
  }
}

void ModelFolder::check_tied_head() const {
  const auto place = place_.find(kHead);
  if (!spec_.tied_embeddings || place == place_.end()) return;
  const std::string embedding_name = spec_.form.prefix + "embed_tokens.weight";
  const SafetensorsFile& head_file = files_[place->second];
  const StoredTensor& head = *head_file.find(kHead);
  const StoredTensor& embedding = stored(embedding_name);
  const std::string where = cat("[checkpoint] ", head_file.path().string());
  check_type(head, where);
  check_shape(head, embedding.shape, where);
  const std::span<const std::byte> a = head_file.bytes(head), b = file_of(embedding_name).bytes(embedding);
  if (head.type == embedding.type && std::memcmp(a.data(), b.data(), a.size()) == 0) return;

  // Other bytes may still be the same values, in another type or as zeros of another sign.
  std::array<double, 4096> of_head, of_embedding;
  const std::int64_t total = head.num_elements();
  for (std::int64_t first = 0; first < total; first += static_cast<std::int64_t>(of_head.size())) {
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(total - first, of_head.size()));
    head_file.read_as_double(kHead, first, std::span(of_head).first(count));
    read_as_double(embedding_name, first, std::span(of_embedding).first(count));
    for (std::size_t i = 0; i < count; ++i) {
      if (of_head[i] == of_embedding[i]) continue;
      throw UsageError(cat(where, ": tie_word_embeddings is true, but ", kHead, " differs from ", embedding_name,
                           " at ", element_text(first + static_cast<std::int64_t>(i), head.shape), ": ", of_head[i],
                           " and ", of_embedding[i], "; set tie_word_embeddings to false or remove the head"));
    }
  }
}

const SafetensorsFile& ModelFolder::file_of(const std::string& parameter) const {
  const auto place = place_.find(parameter);
  internal_check(place != place_.end(), cat("[checkpoint] ", path_.string(), ": no parameter ", in_quotes(parameter)));
  return files_[place->second];
}

const StoredTensor& ModelFolder::stored(const std::string& parameter) const {
  return *file_of(parameter).find(parameter);
}

void ModelFolder::read_as_float(const std::string& parameter, std::int64_t first, std::span<float> out) const {
  file_of(parameter).read_as_float(parameter, first, out);
}

void ModelFolder::read_as_double(const std::string& parameter, std::int64_t first, std::span<double> out) const {
  file_of(parameter).read_as_double(parameter, first, out);
}

void ModelFolder::check_weights() const {
  for (const ParameterSpec& parameter : parameters(spec_)) {
    const SafetensorsFile& file = file_of(parameter.name);
    const StoredTensor& tensor = *file.find(parameter.name);
    const std::optional<std::int64_t> bad = first_not_finite(tensor.type, file.bytes(tensor));
    if (!bad) continue;
    double value = 0;
    file.read_as_double(parameter.name, *bad, std::span(&value, 1));
    throw UsageError(cat("[checkpoint] ", file.path().string(), ": ", parameter.name, " holds ",
                         value != value ? "a NaN" : "an infinity", " at ", element_text(*bad, tensor.shape),
                         "; weights must be finite"));
  }
}

}  // namespace octavo
