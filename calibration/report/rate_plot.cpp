#include "calibration/report/rate_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/base/format.h"

namespace spillway::calibration {
namespace {

constexpr double kWidth = 760, kPanelHeight = 280, kRowHeight = 22;
constexpr double kLeft = 90, kRight = 30, kTop = 44, kBottom = 44;
constexpr const char* kMeasured = "#1f5fa8";
constexpr const char* kFitted = "#c0392b";
constexpr const char* kBefore = "#777777";

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else
      result += c;
  }
  return result;
}

std::string text_at(double x, double y, std::string_view text, const char* anchor = "start",
                    const char* color = "#222222") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\">{}</text>\n",
                     x, y, anchor, color, escaped(text));
}

std::string line_at(double x1, double y1, double x2, double y2, const char* color,
                    const char* more = "") {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"{}/>\n", x1, y1,
      x2, y2, color, more);
}

/// A step of 1, 2 or 5 times a power of ten that gives four to ten lines.
double nice_step(double range) {
  const double raw = range / 5;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (raw <= factor * power) return factor * power;
  return 10 * power;
}

/// Rates by size, the size on a logarithmic axis.
class CurvePanel {
 public:
  CurvePanel(const CopyCurve& curve, double top) : curve_(curve), top_(top) {
    low_ = std::log2(static_cast<double>(curve.points.front().bytes.value()));
    high_ = std::log2(static_cast<double>(curve.points.back().bytes.value()));
    if (high_ - low_ < 1) high_ = low_ + 1;
    for (const CopyCurve::Point& point : curve.points)
      for (const BytesPerSecond rate : {point.measured, point.fitted, point.before})
        most_ = std::max(most_, rate.value() / 1e9);
    most_ *= 1.05;
  }

  std::string svg() const {
    std::string out =
        text_at(kLeft, top_ + 20,
                fmt::format("{}, {} copies: GB/s by the size of a copy",
                            curve_.direction == CopyDirection::kHostToDevice ? "host to device"
                                                                             : "device to host",
                            regime_name()));
    out += axes();
    out += path(kBefore, " stroke-dasharray=\"5 4\"", &CopyCurve::Point::before);
    out += path(kFitted, "", &CopyCurve::Point::fitted);
    for (const CopyCurve::Point& point : curve_.points)
      out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x(point),
                         y(point.measured), kMeasured);
    return out;
  }

 private:
  std::string_view regime_name() const {
    switch (curve_.regime) {
      case CopyRegime::kQueued:
        return "queued";
      case CopyRegime::kIsolated:
        return "isolated";
      case CopyRegime::kOwn:
        return "a profiler's";
      case CopyRegime::kUnknown:
        break;
    }
    return "other";
  }

  double x(double log2_bytes) const {
    return kLeft + (kWidth - kLeft - kRight) * (log2_bytes - low_) / (high_ - low_);
  }
  double x(const CopyCurve::Point& point) const {
    return x(std::log2(static_cast<double>(point.bytes.value())));
  }
  double y(double gigabytes) const {
    const double height = kPanelHeight - kTop - kBottom;
    return top_ + kTop + height * (1 - gigabytes / most_);
  }
  double y(BytesPerSecond rate) const { return y(rate.value() / 1e9); }

  std::string axes() const {
    std::string out;
    const double step = nice_step(most_);
    for (double rate = 0; rate <= most_; rate += step) {
      out += line_at(kLeft, y(rate), kWidth - kRight, y(rate), "#dddddd");
      out += text_at(kLeft - 8, y(rate) + 4, fmt::format("{:g}", rate), "end");
    }
    const double every = std::max(1.0, std::ceil((high_ - low_) / 8));
    for (double power = std::ceil(low_); power <= high_; power += every) {
      const auto bytes = Bytes(static_cast<std::int64_t>(std::exp2(power)));
      out += text_at(x(power), top_ + kPanelHeight - kBottom + 18, format_bytes(bytes), "middle");
    }
    return out;
  }

  std::string path(const char* color, const char* more,
                   BytesPerSecond CopyCurve::Point::*rate) const {
    std::string points;
    for (const CopyCurve::Point& point : curve_.points)
      points += fmt::format("{:.1f},{:.1f} ", x(point), y(point.*rate));
    return fmt::format(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"{}/>\n", points,
        color, more);
  }

  const CopyCurve& curve_;
  double top_, low_ = 0, high_ = 0, most_ = 0;
};

/// Each fitted figure as a bar from what it was, at the middle, to what it is.
std::string change_rows(const std::vector<const FittedFigure*>& figures, double top) {
  double most = 0.05;
  for (const FittedFigure* figure : figures) most = std::max(most, std::abs(figure->change));
  most = std::min(most, 2.0);
  const double label = 260, middle = label + (kWidth - label - 200) / 2;
  const double half = (kWidth - label - 200) / 2;
  std::string out = text_at(20, top + 20, "each fitted figure against what it was");
  out += line_at(middle, top + 32, middle,
                 top + 36 + kRowHeight * static_cast<double>(figures.size()), kBefore);
  double y = top + 48;
  for (const FittedFigure* figure : figures) {
    const double length = half * std::clamp(figure->change / most, -1.0, 1.0);
    out += text_at(label - 10, y, figure->key, "end");
    out += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"10\" fill=\"{}\"/>\n",
        std::min(middle, middle + length), y - 9, std::max(1.0, std::abs(length)), kFitted);
    out += text_at(kWidth - 190, y,
                   fmt::format("{} ({:+.1f} %)", figure->after, figure->change * 100));
    y += kRowHeight;
  }
  return out;
}

}  // namespace

std::string to_svg(const Fit& fit, const std::string& base_id) {
  std::vector<const FittedFigure*> changed;
  for (const FittedFigure& figure : fit.figures)
    if (figure.state == FigureState::kFitted && !figure.before.empty()) changed.push_back(&figure);
  std::string body;
  double top = 40;
  for (const CopyCurve& curve : fit.curves) {
    if (curve.points.empty()) continue;
    body += CurvePanel(curve, top).svg();
    top += kPanelHeight;
  }
  if (!changed.empty()) {
    body += change_rows(changed, top);
    top += 60 + kRowHeight * static_cast<double>(changed.size());
  }
  std::string head =
      text_at(20, 24, fmt::format("{}: measured against {}", fit.profile.id, base_id));
  head += text_at(kWidth - kRight, 24, "points: measured", "end", kMeasured);
  head += text_at(kWidth - 150, 24, "line: fitted", "end", kFitted);
  head += text_at(kWidth - 240, 24, "dashed: before", "end", kBefore);
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
             "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
             "<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"#ffffff\"/>\n",
             kWidth, top + 10) +
         head + body + "</svg>\n";
}

}  // namespace spillway::calibration
