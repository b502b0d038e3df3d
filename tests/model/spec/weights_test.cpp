#include "model/spec/weights.h"

#include <doctest/doctest.h>

#include <string>

#include "model/spec/read_maxtext.h"

namespace spillway {
namespace {

// Parameters as the makers' published checkpoints have them; Gemma's with MaxText's vocabulary of
// 256,128 where theirs is 256,000, and DeepSeek's without multi-token prediction. GPT-3's and Gemma
// 4's as MaxText 0.2.5 makes them (the shapes of its training state, which agree for Llama 3.1 8B,
// Gemma 2 27B and DeepSeek-V2-Lite, too), without the scalar behind each of Gemma 4's layers.
TEST_CASE("parameter counts are exact") {
  struct Row {
    const char* model;
    std::int64_t parameters;
  };
  const Row rows[] = {
      {"llama3.1-405b", 405'853'388'800}, {"llama3.1-70b", 70'553'706'496},
      {"llama3.3-70b", 70'553'706'496},   {"llama3.1-8b", 8'030'261'248},
      {"llama2-7b", 6'738'415'616},       {"llama2-70b", 68'976'648'192},
      {"mistral-7b", 7'241'732'096},      {"qwen3-8b", 8'190'735'360},
      {"qwen3-14b", 14'768'307'200},      {"qwen3-32b", 32'762'123'264},
      {"qwen2.5-7b", 7'615'616'512},      {"gemma2-27b", 27'227'128'320 + 128 * 4608},
      {"gemma3-27b", 27'009'002'240},     {"deepseek3-671b", 671'026'419'200},
      {"deepseek2-16b", 15'706'484'224},  {"kimi-k2-1t", 1'026'408'232'448},
      {"mixtral-8x7b", 46'702'792'704},   {"mixtral-8x22b", 140'630'071'296},
      {"qwen3-30b-a3b", 30'532'122'624},  {"qwen3-235b-a22b", 235'093'634'560},
      {"gpt-oss-20b", 20'914'757'184},    {"gpt-oss-120b", 116'829'156'672},
      {"gpt3-175b", 174'780'997'632},     {"gemma4-31b", 30'697'345'340 - 60},
  };
  for (const Row& row : rows) {
    CAPTURE(row.model);
    const auto model = find_model(row.model);
    REQUIRE(model.ok());
    CHECK(count_parameters(*model) == row.parameters);
  }
}

}  // namespace
}  // namespace spillway
