// Which model types are built, and which are known but not built. A new type is a file and a line in catalogue.cpp.
#pragma once

#include <string>

#include "octavo/spec/model_spec.h"
#include "spec/config_reader.h"

namespace octavo {

using ModelReader = ModelSpec (*)(ConfigReader& config);

/// The reader of `model_type`. Throws UsageError, which begins with `where`, if that type is not built.
ModelReader find_model_reader(const std::string& model_type, const std::string& where);

ModelSpec read_llama(ConfigReader& config);  // llama.cpp
ModelSpec read_qwen3(ConfigReader& config);  // qwen3.cpp

}  // namespace octavo
