#include "cli/calibrate_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/base/utf8.h"
#include "sim/report/diagnostic_text.h"
#include "sim/report/table.h"

namespace spillway {
namespace {

using calibration::FigureState;
using calibration::FittedFigure;
using calibration::Outlier;
using calibration::Skipped;
using calibration::SourceSummary;
using calibration::Warning;
using Json = nlohmann::ordered_json;

constexpr std::size_t kOutliersShown = 3;

std::string percent(double share) { return fmt::format("{:.1f} %", share * 100); }

std::string place_of(const SourceRef& where) {
  if (where.path.empty()) return "";
  return where.line ? fmt::format(" ({}:{})", where.path, *where.line)
                    : fmt::format(" ({})", where.path);
}

/// The readers' and the fit's, each once.
std::vector<Warning> all_warnings(const Calibration& c) {
  std::vector<Warning> all;
  const auto add = [&](const std::vector<Warning>& more) {
    for (const Warning& warning : more)
      if (std::ranges::none_of(all, [&](const Warning& known) {
            return known.code == warning.code && known.text == warning.text &&
                   known.where.path == warning.where.path;
          }))
        all.push_back(warning);
  };
  add(c.measurements.warnings);
  add(c.fit.warnings);
  return all;
}

std::string figures_text(const Calibration& c) {
  TextTable table({"figure", ">before", ">fitted", "95 %", ">change", ">samples", ">error"});
  for (const FittedFigure& figure : c.fit.figures) {
    if (figure.state != FigureState::kFitted) continue;
    const std::string range =
        figure.low.empty() ? "" : fmt::format("{} to {}", figure.low, figure.high);
    table.add({figure.key, figure.before, figure.after, range,
               figure.before.empty() ? "" : fmt::format("{:+.1f} %", figure.change * 100),
               std::to_string(figure.samples), percent(figure.median_error)});
  }
  return table.text();
}

std::string refusals_text(const Calibration& c) {
  std::string text;
  for (const FittedFigure& figure : c.fit.figures)
    if (figure.state == FigureState::kRefused)
      text +=
          wrapped(fmt::format("{} ({} samples): {}", figure.key, figure.samples, figure.why), "  ");
  return text.empty() ? "" : "\nMeasured, and not determined\n" + text;
}

std::string doubts_text(const Calibration& c) {
  std::string text;
  for (const FittedFigure& figure : c.fit.figures) {
    if (figure.state != FigureState::kFitted) continue;
    if (!figure.why.empty()) text += wrapped(figure.key + ": " + figure.why, "  ");
    for (std::size_t k = 0; k < std::min(kOutliersShown, figure.outliers.size()); ++k) {
      const Outlier& outlier = figure.outliers[k];
      text += wrapped(fmt::format("{}: {} stands apart, the fit says {:+.0f} %{}", figure.key,
                                  outlier.what, outlier.residual * 100, place_of(outlier.where)),
                      "  ");
    }
    if (figure.outliers.size() > kOutliersShown)
      text += fmt::format("  {}: {} more stand apart\n", figure.key,
                          figure.outliers.size() - kOutliersShown);
  }
  return text.empty() ? "" : "\nTo doubt\n" + text;
}

std::string kept_text(const Calibration& c) {
  std::string keys;
  for (const FittedFigure& figure : c.fit.figures)
    if (figure.state == FigureState::kKept && !figure.before.empty())
      keys += (keys.empty() ? "" : ", ") + figure.key;
  return keys.empty() ? "" : "\nNot measured, as in " + c.base.id + "\n" + wrapped(keys, "  ");
}

Json place_json(const SourceRef& where) {
  Json json = {{"path", where.path}};
  if (where.line) json["line"] = *where.line;
  return json;
}

std::string_view name_of(FigureState state) {
  switch (state) {
    case FigureState::kFitted:
      return "fitted";
    case FigureState::kRefused:
      return "refused";
    case FigureState::kKept:
      break;
  }
  return "kept";
}

Json figure_json(const FittedFigure& figure) {
  Json json = {{"key", figure.key},
               {"state", name_of(figure.state)},
               {"before", figure.before},
               {"after", figure.after},
               {"samples", figure.samples}};
  if (figure.state == FigureState::kFitted) {
    json["change"] = figure.change;
    if (!figure.low.empty()) json["interval"] = {figure.low, figure.high};
    json["median_error"] = figure.median_error;
    json["worst_error"] = figure.worst_error;
  }
  if (!figure.why.empty()) json["why"] = figure.why;
  json["outliers"] = Json::array();
  for (const Outlier& outlier : figure.outliers)
    json["outliers"].push_back({{"what", outlier.what},
                                {"residual", outlier.residual},
                                {"where", place_json(outlier.where)}});
  return json;
}

}  // namespace

bool has_fitted(const Calibration& c) {
  return std::ranges::any_of(c.fit.figures, [](const FittedFigure& figure) {
    return figure.state == FigureState::kFitted;
  });
}

std::string calibrate_text(const Calibration& c) {
  std::string text =
      fmt::format("{} on the base of {}, {}\n\nRead\n", c.fit.profile.id, c.base.id, c.base.name);
  for (const SourceSummary& source : c.measurements.sources)
    text += wrapped(fmt::format("{}: {}: {}", source.path, source.format, source.read), "  ");
  text += "\n" + (has_fitted(c) ? figures_text(c) : "  No figure could be determined.\n");
  text += refusals_text(c) + doubts_text(c);
  if (const std::vector<Warning> warnings = all_warnings(c); !warnings.empty()) {
    text += "\nWarnings\n";
    for (const Warning& warning : warnings)
      text += wrapped(warning.code + ": " + warning.text + place_of(warning.where), "  ");
  }
  if (!c.measurements.skipped.empty()) {
    text += "\nRead, and not used\n";
    for (const Skipped& skipped : c.measurements.skipped)
      text += wrapped(skipped.what + (skipped.why.empty() ? "" : ": " + skipped.why), "  ");
  }
  return text + kept_text(c);
}

std::string calibrate_json(const Calibration& c) {
  Json json;
  json["schema"] = "spillway.calibrate/1";
  json["base"] = c.base.id;
  json["id"] = c.fit.profile.id;
  json["device"] = c.measurements.machine.device;
  json["sources"] = Json::array();
  for (const SourceSummary& source : c.measurements.sources)
    json["sources"].push_back(
        {{"path", source.path}, {"format", source.format}, {"read", source.read}});
  json["figures"] = Json::array();
  for (const FittedFigure& figure : c.fit.figures) json["figures"].push_back(figure_json(figure));
  json["warnings"] = Json::array();
  for (const Warning& warning : all_warnings(c))
    json["warnings"].push_back(
        {{"code", warning.code}, {"text", warning.text}, {"where", place_json(warning.where)}});
  json["skipped"] = Json::array();
  for (const Skipped& skipped : c.measurements.skipped)
    json["skipped"].push_back({{"what", skipped.what}, {"why", skipped.why}});
  // Names and paths come from the input, and need not be UTF-8.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string calibrate_comment(const Calibration& c) {
  std::string comment = "Made by 'spillway calibrate' on the base of " + c.base.id + ", from\n";
  for (const SourceSummary& source : c.measurements.sources) {
    const std::size_t slash = source.path.rfind('/');
    comment += "  " +
               printable_line(source.path.substr(slash == std::string::npos ? 0 : slash + 1)) +
               ": " + source.format + "\n";
  }
  return comment + "Each figure that came of it says so in its origin; the others are the base's.";
}

}  // namespace spillway
