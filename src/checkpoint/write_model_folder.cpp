#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "checkpoint/output_file.h"
#include "checkpoint/shard_index.h"
#include "octavo/base/error.h"
#include "octavo/base/text.h"
#include "octavo/checkpoint/model_folder.h"
#include "octavo/spec/parameters.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kChunkElements = std::int64_t{1} << 20;  // asked for at a time, at least one row

constexpr std::size_t kLongestName = 200;  // leaves room for the suffix of a folder that is not complete yet

// What tokenizers and generation settings are called: kept when a model folder is replaced.
constexpr std::array<std::string_view, 10> kCarriedOver = {"tokenizer.json",      "tokenizer_config.json",
                                                           "tokenizer.model",     "special_tokens_map.json",
                                                           "added_tokens.json",   "vocab.json",
                                                           "merges.txt",          "generation_config.json",
                                                           "chat_template.jinja", "chat_template.json"};

bool is_carried_over(const std::string& name) {
  return std::find(kCarriedOver.begin(), kCarriedOver.end(), name) != kCarriedOver.end();
}

bool is_written_anew(std::string_view name) {
  return name == "config.json" || name == kIndexFile || name == kSingleFile ||
         (name.starts_with("model-") && name.ends_with(".safetensors"));
}

[[noreturn]] void fail(const fs::path& path, std::string_view what, const std::string& reason) {
  throw UsageError(
      cat("[checkpoint] ", path.string(), ": ", what, " (", reason, "); check folder, permissions and space"));
}

// A folder beside the target; gone at the end unless it got the target's name.
class NewFolder {
 public:
  explicit NewFolder(const fs::path& target) : target_(target) {
    std::error_code error;
    fs::create_directories(target.parent_path(), error);
    if (error) fail(target.parent_path(), "cannot be made", error.message());
    path_ = unused_name("partial");
  }
  NewFolder(const NewFolder&) = delete;
  ~NewFolder() {
    std::error_code ignored;
    if (!named_) fs::remove_all(path_, ignored);
  }

  const fs::path& path() const { return path_; }

  // Puts the folder in the target's place; what was there is moved aside first and removed last.
  void take_name() {
    std::error_code error, ignored;
    sync_folder(path_);
    const bool replaces = fs::exists(target_, error);
    const fs::path old = replaces ? unused_name("replaced") : fs::path();
    if (replaces) fs::rename(target_, old, error);  // onto the empty folder that unused_name() made
    if (!error) fs::rename(path_, target_, error);
    if (error) {
      const std::string reason = error.message();
      if (replaces && !fs::exists(target_, ignored)) fs::rename(old, target_, ignored);
      fail(target_, "cannot be put in place", reason);
    }
    named_ = true;
    sync_folder(target_.parent_path());
    if (replaces) fs::remove_all(old, ignored);
  }

 private:
  fs::path unused_name(const char* purpose) const {
    for (int attempt = 0;; ++attempt) {
      fs::path path = target_;
      path += cat(".", purpose, "-", ::getpid(), "-", attempt);
      if (::mkdir(path.c_str(), 0777) == 0) return path;
      if (errno != EEXIST) fail(path, "cannot be made", std::strerror(errno));
    }
  }

  fs::path target_, path_;
  bool named_ = false;
};

// The config as it was read, with the dtype of the files under every name that it uses, or the old one.
std::string config_text(const ModelSpec& spec, StorageType type) {
  const ModelSpec again = parse_model_spec(spec.config_json, "config.json to be written");
  const std::vector<ParameterSpec> ours = parameters(spec), theirs = parameters(again);
  internal_check(
      std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end(),
                 [](const ParameterSpec& a, const ParameterSpec& b) { return a.name == b.name && a.shape == b.shape; }),
      "[checkpoint] the model's config_json describes other parameters than the model");
  auto config = nlohmann::ordered_json::parse(spec.config_json);
  const char* dtype = type == StorageType::F32 ? "float32" : "bfloat16";
  if (config.contains("dtype")) config["dtype"] = dtype;
  if (config.contains("torch_dtype") || !config.contains("dtype")) config["torch_dtype"] = dtype;
  return config.dump(2) + "\n";
}

void write_text(const fs::path& file, const std::string& text) {
  OutputFile output(file);
  output.write(text);
  output.commit();
}

// Runs of parameters of at most `max_bytes` each, at least one parameter.
std::vector<std::vector<ParameterSpec>> cut_into_shards(const ModelSpec& spec, const WriteModelOptions& options) {
  std::vector<std::vector<ParameterSpec>> shards(1);
  Bytes used = 0;
  for (ParameterSpec& parameter : parameters(spec)) {
    const StoredTensor tensor = {.name = parameter.name, .type = options.type, .shape = parameter.shape};
    const Bytes bytes = tensor.num_elements() * storage_bits(options.type) / 8;
    if (!shards.back().empty() && used + bytes > options.max_shard_bytes) {
      shards.emplace_back();
      used = 0;
    }
    used += bytes;
    shards.back().push_back(std::move(parameter));
  }
  return shards;
}

std::string shard_name(std::size_t index, std::size_t num_shards) {
  if (num_shards == 1) return kSingleFile;
  const auto digits = [](std::size_t number) {
    const std::string text = std::to_string(number);
    return std::string(text.size() < 5 ? 5 - text.size() : 0, '0') + text;
  };
  return cat("model-", digits(index + 1), "-of-", digits(num_shards), ".safetensors");
}

void write_shard(const fs::path& file, const std::vector<ParameterSpec>& shard, const ReadElements& read,
                 StorageType type) {
  std::vector<StoredTensor> tensors;
  for (const ParameterSpec& parameter : shard) {
    tensors.push_back({.name = parameter.name, .type = type, .shape = parameter.shape});
  }
  SafetensorsWriter writer(file, tensors);
  std::vector<float> buffer;
  for (std::size_t i = 0; i < shard.size(); ++i) {
    const std::int64_t total = tensors[i].num_elements();
    const std::int64_t row = shard[i].shape.size() < 2 ? 1 : total / shard[i].shape[0];
    const std::int64_t chunk = std::max<std::int64_t>(1, kChunkElements / row) * row;
    for (std::int64_t first = 0; first < total; first += chunk) {
      buffer.resize(static_cast<std::size_t>(std::min(chunk, total - first)));
      read(shard[i], first, buffer);
      writer.append(std::span<const float>(buffer));
    }
  }
  writer.commit();
}

}  // namespace

void check_model_target(const fs::path& folder) {
  std::error_code error;
  if (folder.empty()) throw UsageError("[checkpoint] the name of the output folder is empty; give one");
  // The nearest folder above that exists is where the new one will be made.
  fs::path above = fs::absolute(folder).lexically_normal();
  do {
    if (above.filename().string().size() > kLongestName) fail(above, "cannot be made", "its name is too long");
    above = above.parent_path();
  } while (!fs::exists(above, error) && above != above.root_path());
  if (!fs::is_directory(above, error)) fail(above, "is no folder to write into", "it is a file");
  if (::access(above.c_str(), W_OK) != 0) fail(above, "cannot be written to", std::strerror(errno));
  // Some file systems let everyone in and nothing be made.
  const fs::path probe = above / cat(".octavo-probe-", ::getpid());
  if (!fs::create_directory(probe, error)) {
    fail(above, "cannot be written to", error ? error.message() : "a folder of the trial's name is in the way");
  }
  fs::remove(probe, error);
  const fs::file_status status = fs::symlink_status(folder, error);
  if (!fs::exists(status)) return;
  const std::string where = cat("[checkpoint] ", folder.string());
  if (!fs::is_directory(status)) throw UsageError(cat(where, ": exists and is not a folder; choose another name"));
  bool empty = true, config = false;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!entry->is_regular_file(error) || (!is_written_anew(name) && !is_carried_over(name))) {
      throw UsageError(cat(where, ": holds ", in_quotes(name),
                           ", so it is no model folder that may be replaced; choose another name"));
    }
    empty = false;
    config = config || name == "config.json";
  }
  if (error) fail(folder, "cannot be listed", error.message());
  if (!empty && !config) {
    throw UsageError(cat(where,
                         ": is not empty and has no config.json, so it is no model folder that may be replaced; "
                         "choose another name"));
  }
}

void write_model_folder(const fs::path& folder, const ModelSpec& spec, const ReadElements& read,
                        const WriteModelOptions& options) {
  internal_check(options.type == StorageType::F32 || options.type == StorageType::BF16,
                 cat("[checkpoint] a model is not written as ", storage_type_name(options.type)));
  fs::path target = fs::absolute(folder).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();  // "out/"
  check_model_target(target);
  const std::string config = config_text(spec, options.type);

  NewFolder fresh(target);
  const std::vector<std::vector<ParameterSpec>> shards = cut_into_shards(spec, options);
  nlohmann::ordered_json weight_map = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shard_name(i, shards.size());
    write_shard(fresh.path() / name, shards[i], read, options.type);
    for (const ParameterSpec& parameter : shards[i]) weight_map[parameter.name] = name;
  }
  if (shards.size() > 1) {
    const Bytes total = num_parameters(spec) * storage_bits(options.type) / 8;
    const nlohmann::ordered_json index = {{"metadata", {{"total_size", total}}}, {"weight_map", weight_map}};
    write_text(fresh.path() / kIndexFile, index.dump(2) + "\n");
  }
  write_text(fresh.path() / "config.json", config);
  for (const std::string_view name : kCarriedOver) {
    std::error_code error;
    const fs::path& from = fs::exists(target / name, error) ? target : options.carry_from;
    if (from.empty() || !fs::is_regular_file(from / name, error)) continue;
    fs::copy_file(from / name, fresh.path() / name, error);
    if (error) fail(from / name, "cannot be carried over", error.message());
  }
  check_model_target(target);  // others may have written into it meanwhile
  fresh.take_name();
}

}  // namespace octavo
