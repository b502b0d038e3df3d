#include "sim/report/anchor_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "model/base/format.h"

namespace spillway {

std::string not_ranked_because(const Anchor& anchor) {
  if (anchor.ranks()) return "";
  if (!anchor.residual())
    return "the profile does not hold what the step took, so it cannot be told whether its "
           "durations make up the step: say it with --measured-step";
  return fmt::format(
      "replayed with what was measured, the step is {:+.1f} % off, more than {:.0f} %: what the "
      "durations do not hold (waits, gaps, other machines) decides the step, and may decide "
      "between "
      "policies",
      100 * *anchor.residual(), 100 * kMostResidual);
}

std::string anchor_text(const Anchor& anchor) {
  std::string text;
  if (const auto residual = anchor.residual())
    text +=
        fmt::format("Residual against the measured step: {:+.1f} % ({} replayed, {} measured)\n",
                    100 * *residual, format_seconds(anchor.replayed_step),
                    format_seconds(*anchor.measured_step));
  else
    text += fmt::format("Residual against the measured step: not known ({} replayed)\n",
                        format_seconds(anchor.replayed_step));
  text += fmt::format(
      "Anchored on {}: measured are {} of the {} instructions that run something, {:.1f} % of "
      "their "
      "time; the model alone says {}.\n",
      anchor.path, anchor.measured, anchor.measured + anchor.unmeasured,
      100 * anchor.share_measured, format_seconds(anchor.modelled_step));
  if (!anchor.unmatched.empty())
    text += fmt::format("Nothing that runs has {} of the run's names, {} first.\n",
                        anchor.unmatched.size(), spillway::quoted(anchor.unmatched.front()));
  for (const std::string& note : anchor.notes) text += "Of the run: " + note + ".\n";
  if (const std::string why = not_ranked_because(anchor); !why.empty())
    text += "NOT RANKED: " + why + ".\n";
  return text;
}

std::string anchor_json(const Anchor& anchor) {
  using Json = nlohmann::ordered_json;
  const auto number = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
  Json json;
  json["residual"] = number(anchor.residual());
  json["ranked"] = anchor.ranks();
  json["not_ranked_because"] = not_ranked_because(anchor);
  json["profile"] = anchor.path;
  json["measured_step_seconds"] =
      anchor.measured_step ? Json(anchor.measured_step->value()) : Json(nullptr);
  json["replayed_step_seconds"] = anchor.replayed_step.value();
  json["modelled_step_seconds"] = anchor.modelled_step.value();
  json["instructions_measured"] = anchor.measured;
  json["instructions_not_measured"] = anchor.unmeasured;
  json["share_measured"] = anchor.share_measured;
  json["unmatched"] = anchor.unmatched;
  json["notes"] = anchor.notes;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace spillway
