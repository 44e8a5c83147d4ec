// A config.json of a model that sees: the text model's keys stand in `text_config`; the rest is left out.
#pragma once

#include <string>

#include "spec/catalogue.h"

namespace octavo {

/// The model in text_config, of type `text_type`, read by `read_text`. Its names stand under model.language_model.
ModelSpec read_text_of_wrapper(ConfigReader& config, const std::string& text_type, ModelReader read_text);

}  // namespace octavo
