// Steps of the corpus as the configuration that they were compiled from.
#pragma once

#include <sstream>
#include <string>

#include "tests/support/csv_rows.h"
#include "tests/support/spec_step.h"

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
  return step_of(maxtext_keys(row), std::stoll(row.at("n_devices")), row.at("id") + ".yml");
}

}  // namespace spillway::testing
