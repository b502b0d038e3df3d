// What `verify` answers, for scripts: schema spillway.verify/1.
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/report/verify_report.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

Json number_json(const VerifiedFigure& figure, double value) {
  if (figure.unit == VerifiedFigure::Unit::kBytes) return static_cast<std::int64_t>(value);
  return value;
}

Json figure_json(const VerifiedFigure& figure) {
  const double relative = figure.relative_difference();
  return {{"predicted", number_json(figure, figure.predicted)},
          {"compiled", number_json(figure, figure.compiled)},
          {"difference", number_json(figure, figure.difference())},
          {"relative_difference", std::isfinite(relative) ? Json(relative) : Json(nullptr)},
          {"tolerance", figure.tolerance ? Json(*figure.tolerance) : Json(nullptr)},
          {"agrees", figure.agrees()}};
}

Json items_json(const std::vector<Item>& items) {
  Json list = Json::array();
  for (const Item& item : items)
    list.push_back({{"name", item.name},
                    {"shape", item.shape},
                    {"op_name", item.origin},
                    {"bytes", item.bytes.value()},
                    {"count", item.count}});
  return list;
}

Json excess_json(const Excess& excess) {
  return {{"only_predicted", items_json(excess.first)},
          {"only_compiled", items_json(excess.second)}};
}

Json not_done_json(const NotDone& value) {
  return {{"name", value.label},
          {"shape", value.shape},
          {"layers", value.layers},
          {"total_bytes", value.bytes.value()},
          {"planned", value.planned ? Json(name_of(*value.planned)) : Json(nullptr)},
          {"compiled", name_of(value.found)},
          {"growth_bytes", value.growth.value()}};
}

}  // namespace

std::string render_json(const VerifyReport& report) {
  Json json{{"schema", "spillway.verify/1"}};
  json["program"] = {{"name", report.program_name}, {"path", report.path}};
  json["plan"] = report.plan_path;
  json["hardware"] = report.hardware;
  json["agrees"] = report.agrees();
  Json policy = Json::object();
  for (const auto& [name, choice] : report.policy) policy[name] = name_of(choice);
  json["policy"] = policy;
  json["figures"] = Json::object();
  for (const VerifiedFigure& figure : report.figures)
    json["figures"][figure.json] = figure_json(figure);
  json["not_as_planned"] = Json::array();
  for (const NotDone& value : report.not_done)
    json["not_as_planned"].push_back(not_done_json(value));
  json["causes"] = Json::array();
  for (const Cause& cause : report.causes)
    json["causes"].push_back(
        {{"code", cause.code}, {"message", cause.what}, {"advice", cause.advice}});
  json["buffers"] = excess_json(report.buffers);
  json["host_arrays"] = excess_json(report.host_arrays);
  json["offloads"] = excess_json(report.offloads);
  json["reloads"] = excess_json(report.reloads);
  json["assumptions"] = report.assumptions;
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace spillway
