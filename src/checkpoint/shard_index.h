// model.safetensors.index.json: which shard holds which tensor.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace octavo {

inline constexpr const char* kSingleFile = "model.safetensors";
inline constexpr const char* kIndexFile = "model.safetensors.index.json";

/// Tensor -> name of a file in the folder. Throws UsageError, which begins with the index's path, if the index is not
/// JSON, has no weight_map, or names anything but a file of its own folder. Whether the files exist is not looked at.
std::map<std::string, std::string> read_shard_index(const std::filesystem::path& index);

}  // namespace octavo
