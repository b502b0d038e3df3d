#include "validation/vtrain_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "model/spec/config_keys.h"

namespace spillway {

Settings megatron_settings(const MegatronStep& step) {
  const std::int64_t devices = step.tensor * step.data * step.pipeline;
  const std::int64_t microbatches = step.batch / (step.microbatch * step.data);
  const auto text = [](std::int64_t value) { return std::to_string(value); };
  return {
      {"machine", "a100"},
      {"devices", text(devices)},
      {"decoder_block", "gpt3"},
      {"mlp_activations", "[gelu]"},
      {"logits_via_embedding", "true"},
      {"fused_qkv", "true"},
      {"vocab_size", "51200"},
      {"base_emb_dim", text(step.hidden)},
      {"base_mlp_dim", text(4 * step.hidden)},
      {"base_num_query_heads", text(step.heads)},
      {"base_num_kv_heads", text(step.heads)},
      {"head_dim", text(step.hidden / step.heads)},
      {"base_num_decoder_layers", text(step.layers)},
      {"trainable_position_size", text(step.sequence)},
      {"max_target_length", text(step.sequence)},
      {"dtype", "float16"},
      {"attention", "dot_product"},
      {"per_device_batch_size",
       fmt::format("{:.17g}", static_cast<double>(step.microbatch) /
                                  static_cast<double>(step.tensor * step.pipeline))},
      {"gradient_accumulation_steps", text(microbatches)},
      {"ici_fsdp_parallelism", "1"},
      {"ici_data_parallelism", text(step.data)},
      {"ici_tensor_parallelism", text(step.tensor)},
      {"ici_pipeline_parallelism", text(step.pipeline)},
      {"num_pipeline_microbatches", text(microbatches)},
      {"remat_policy", "full"},
  };
}

Result<PublishedResults> parse_vtrain(const std::string& csv, const std::string& path) {
  constexpr std::size_t kColumns = 12;
  PublishedResults results;
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);  // titles
  for (std::size_t number = 2; std::getline(lines, line); ++number) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream words(line);
    std::vector<double> values;
    for (std::string word; words >> word;)
      if (const auto value = parse_number(word)) values.push_back(*value);
    if (values.empty()) continue;
    if (values.size() != kColumns)
      return error_in_file(path, fmt::format("line {} has no {} numbers", number, kColumns));
    const auto whole = [&](std::size_t i) { return static_cast<std::int64_t>(values[i]); };
    PublishedRow row;
    row.id = fmt::format("V{}", number - 1);
    row.claim = fmt::format("{:g} B on {:g} A100, t {:g} d {:g} p {:g}", values[0], values[1],
                            values[8], values[9], values[10]);
    row.measure = "step";
    row.tier = Tier::kAbsolute;
    row.step = megatron_settings({whole(4), whole(5), whole(6), whole(7), whole(2), whole(3),
                                  whole(8), whole(9), whole(10)});
    row.step["network"] = "11.25";
    row.published = fmt::format("{:g}", values[11] / 1000);
    row.unit = "s";
    row.tolerance = {0.15, true};
    row.series = "vTrain";
    row.calibrates = values[0] < 4;
    results.rows.push_back(std::move(row));
  }
  return results;
}

}  // namespace spillway
