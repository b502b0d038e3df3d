// Steps read from MaxText's keys that a test writes down.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "model/spec/read_maxtext.h"

namespace spillway::testing {

/// A line a key; the running test fails where that is no step. `path` is for messages.
inline StepSpec step_of(const std::string& keys, std::int64_t devices,
                        const std::string& path = "run.yml") {
  const auto document = parse_yaml(keys, path);
  REQUIRE(document.ok());
  const auto step = read_maxtext(*document, devices);
  REQUIRE_MESSAGE(step.ok(), (step.ok() ? "" : to_text(step.error())));
  return *step;
}

}  // namespace spillway::testing
