// Hugging Face's config.json: a model's dimensions, nothing about how it is trained. Keys go by
// several names there ("hidden_size", "n_embd", "d_model") and may be nested ("text_config");
// head_dim may be absent or null and then is hidden_size / heads, as the library itself has it.
// Every other dimension has to be there: the missing key is named.
#pragma once

#include <string>

#include "model/base/result.h"
#include "model/spec/model_spec.h"

namespace spillway {

Result<ModelSpec> read_hf_config(const std::string& path);
/// The same of a text; `path` is only for messages.
Result<ModelSpec> parse_hf_config(const std::string& text, const std::string& path);

}  // namespace spillway
