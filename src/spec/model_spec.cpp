#include "octavo/spec/model_spec.h"

#include <nlohmann/json.hpp>

#include "octavo/base/error.h"
#include "octavo/base/json.h"
#include "octavo/base/text.h"
#include "spec/catalogue.h"
#include "spec/config_reader.h"

namespace octavo {

ModelSpec parse_model_spec(const std::string& json_text, const std::string& origin) {
  const std::string where = cat("[spec] ", origin);
  const nlohmann::json config = parse_json(json_text, where);
  ConfigReader reader(config, where);
  ModelSpec model = find_model_reader(reader.keys.text("model_type"), where)(reader);
  model.config_json = json_text;
  return model;
}

ModelSpec read_model_spec(const std::filesystem::path& file_or_folder) {
  std::filesystem::path file = file_or_folder;
  std::error_code error;
  if (std::filesystem::is_directory(file_or_folder, error)) {
    file /= "config.json";
    if (!std::filesystem::exists(file, error)) {
      throw UsageError(cat("[spec] ", file_or_folder.string(),
                           ": there is no config.json in this folder; give a Hugging Face model folder"));
    }
  }
  return parse_model_spec(read_text_file(file, cat("[spec] ", file.string())), file.string());
}

}  // namespace octavo
