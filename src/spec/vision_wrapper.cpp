#include "spec/vision_wrapper.h"

#include <optional>

#include "octavo/base/text.h"

namespace octavo {

ModelSpec read_text_of_wrapper(ConfigReader& config, const std::string& text_type, ModelReader read_text) {
  JsonObject& keys = config.keys;
  const std::string type = keys.text("model_type");
  if (keys.find("text_config") == nullptr) {
    keys.fail("text_config", cat("is missing; model_type ", in_quotes(type), " describes its text model there"));
  }
  ConfigReader text(keys.value("text_config"), keys.where() + ": text_config");
  if (text.keys.text("model_type") != text_type) {
    text.keys.fail("model_type", cat("is ", in_quotes(text.keys.text("model_type")), "; under model_type ",
                                     in_quotes(type), " it must be ", in_quotes(text_type)));
  }
  const std::optional<bool> outer = keys.find_boolean("tie_word_embeddings");
  const std::optional<bool> inner = text.keys.find_boolean("tie_word_embeddings");
  if (outer && inner && *outer != *inner) {
    keys.fail("tie_word_embeddings", cat("is ", *outer ? "true" : "false", " and in text_config ",
                                         *inner ? "true" : "false", "; correct one of them"));
  }
  ModelSpec model = read_text(text);
  model.model_type = type;
  model.tied_embeddings = outer.value_or(inner.value_or(false));
  model.form.prefix = "model.language_model.";
  for (const char* key : {"architectures", "dtype", "torch_dtype", "image_token_id", "language_model_only",
                          "transformers_version", "use_cache", "video_token_id", "vision_config", "vision_end_token_id",
                          "vision_start_token_id", "bos_token_id", "eos_token_id", "pad_token_id", "_name_or_path"}) {
    keys.ignore(key);
  }
  keys.finish();
  return model;
}

}  // namespace octavo
