// Steps of the corpus as the configuration that they were compiled from.
#pragma once

#include <doctest/doctest.h>

#include <sstream>
#include <string>

#include "model/spec/read_maxtext.h"
#include "tests/support/csv_rows.h"

namespace spillway::testing {

/// Whether a row of corpus.csv is a scanned MaxText step compiled with default flags.
inline bool is_plain_maxtext(const CsvRow& row) {
  return row.at("status") == "ok" && row.at("xla_flags").empty() &&
         row.at("scan_layers") == "True" && row.at("generator").starts_with("maxtext") &&
         !row.at("id").ends_with("_xremat");
}

/// MaxText's keys of a row, one a line.
inline std::string maxtext_keys(const CsvRow& row) {
  std::string text = "model_name: " + row.at("model") + "\nattention: " + row.at("attention") +
                     "\ndtype: bfloat16\nweight_dtype: float32\nuse_iota_embed: true\n"
                     "gradient_clipping_threshold: 1.0\n";
  std::istringstream notes(row.at("notes"));
  for (std::string word; notes >> word;)
    if (const std::size_t at = word.find('='); at != std::string::npos)
      text += word.substr(0, at) + ": " + word.substr(at + 1) + "\n";
  return text;
}

inline StepSpec corpus_step(const CsvRow& row) {
  const auto document = parse_yaml(maxtext_keys(row), row.at("id") + ".yml");
  REQUIRE(document.ok());
  const auto step = read_maxtext(*document, std::stoll(row.at("n_devices")));
  REQUIRE_MESSAGE(step.ok(), (step.ok() ? "" : to_text(step.error())));
  return *step;
}

}  // namespace spillway::testing
