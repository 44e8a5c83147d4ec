// Which model types are built, and which are known but not built. A new type is a file and a line in catalogue.cpp.
#pragma once

#include <string>

#include "octavo/spec/model_spec.h"
#include "spec/config_reader.h"

namespace octavo {

using ModelReader = ModelSpec (*)(ConfigReader& config);

/// The reader of `model_type`. Throws UsageError, which begins with `where`, if that type is not built.
ModelReader find_model_reader(const std::string& model_type, const std::string& where);

ModelSpec read_llama(ConfigReader& config);             // llama.cpp
ModelSpec read_mixtral(ConfigReader& config);           // mixtral.cpp
ModelSpec read_qwen3(ConfigReader& config);             // qwen3.cpp
ModelSpec read_qwen3_moe(ConfigReader& config);         // qwen3_moe.cpp
ModelSpec read_qwen3_next(ConfigReader& config);        // qwen3_next.cpp
ModelSpec read_qwen3_5(ConfigReader& config);           // qwen3_5.cpp
ModelSpec read_qwen3_5_text(ConfigReader& config);      // qwen3_5.cpp
ModelSpec read_qwen3_5_moe(ConfigReader& config);       // qwen3_5_moe.cpp
ModelSpec read_qwen3_5_moe_text(ConfigReader& config);  // qwen3_5_moe.cpp

}  // namespace octavo
