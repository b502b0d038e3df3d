#include "sim/scale/sized_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/scale/accumulation.h"
#include "sim/scale/scale_notes.h"

namespace spillway {
namespace {

/// Numbers of a global shape that grow with the batch: those of an argument, and all its dimensions
/// as one.
struct GrowingSize {
  std::int64_t before = 1, now = 1;
};

std::vector<GrowingSize> growing_sizes(const Program& first, const Program& resized) {
  std::vector<GrowingSize> sizes;
  const auto shape_of = [](const Program& program, std::size_t number) {
    const Computation& entry = program.entry_computation();
    return entry[entry.parameters()[number]].shape;
  };
  for (std::size_t k = 0; k < first.entry_computation().parameters().size(); ++k) {
    const auto before = shape_of(first, k).dims(), now = shape_of(resized, k).dims();
    if (std::ranges::equal(before, now)) continue;
    GrowingSize whole;
    for (std::size_t d = 0; d < before.size(); ++d) {
      if (before[d] != now[d]) sizes.push_back({before[d], now[d]});
      whole.before *= before[d];
      whole.now *= now[d];
    }
    sizes.push_back(whole);
  }
  return sizes;
}

/// Shapes of names are global: their first dimension that is a whole number of shares of something
/// that grows, grows with it.
void resize_names(const std::vector<GrowingSize>& sizes, std::int64_t devices, NameList& names) {
  const auto grows = [&](std::int64_t dim) {
    return std::ranges::find_if(sizes, [&](const GrowingSize& size) {
      return dim % size.before == 0 && devices % (dim / size.before) == 0;
    });
  };
  for (CheckpointName& name : names.names)
    for (std::int64_t& dim : name.shape)
      if (const auto size = grows(dim); size != sizes.end()) {
        dim = dim / size->before * size->now;
        break;
      }
}

Error not_a_size(SizeAxis axis, double size) {
  return usage_error(fmt::format("{} {:g} is no size", name_of(axis), size), "a number above 0");
}

std::optional<Error> check_request(const SizeRequest& request) {
  // Beyond that nothing is like the programs that were compiled, and sizes no longer add up.
  constexpr double kMostGrowth = 1000;
  for (const double size : {request.first, request.second})
    if (!std::isfinite(size) || size <= 0) return not_a_size(request.axis, size);
  if (request.first == request.second)
    return usage_error(
        fmt::format("the two dumps are both of {} {:g}", name_of(request.axis), request.first),
        "two that differ in it");
  for (const double size : request.sizes) {
    if (!std::isfinite(size) || size <= 0) return not_a_size(request.axis, size);
    if (size > kMostGrowth * std::max(request.first, request.second))
      return usage_error(fmt::format("{} {:g} is more than {:g} times that of the dumps",
                                     name_of(request.axis), size, kMostGrowth),
                         "compile one that is nearer");
  }
  return std::nullopt;
}

bool is_token_type(ElementType type) {
  return type == ElementType::kS32 || type == ElementType::kU32 || type == ElementType::kS64 ||
         type == ElementType::kU64;
}

/// Tokens are [batch, sequence], with more in a sequence than in a batch: two dumps that differ in
/// the other dimension than was said are of another size than was said.
std::optional<Error> check_axis(const Program& first, const Program& second, SizeAxis axis) {
  const Computation &a = first.entry_computation(), &b = second.entry_computation();
  for (std::size_t k = 0; k < a.parameters().size(); ++k) {
    const Shape one = a[a.parameters()[k]].shape, two = b[b.parameters()[k]].shape;
    if (!is_token_type(one.type()) || one.dims().size() != 2 || two.dims().size() != 2) continue;
    const std::int64_t batch = one.dims()[0], sequence = one.dims()[1];
    if (batch >= sequence) continue;
    const bool is_batch = batch != two.dims()[0], is_sequence = sequence != two.dims()[1];
    if (is_batch == is_sequence) continue;
    const SizeAxis found = is_batch ? SizeAxis::kBatch : SizeAxis::kSequence;
    if (found == axis) continue;
    return usage_error(fmt::format("the two dumps differ in {}, and not in {}: their tokens are {} "
                                   "and {} a device",
                                   name_of(found), name_of(axis), to_string(one), to_string(two)),
                       is_batch ? "for example --batch-of-dumps 2,1 --batch 4"
                                : "for example --seq-of-dumps 2048,8192 --seq 4096");
  }
  return std::nullopt;
}

std::string accumulation_note(const Program& program, std::int64_t count) {
  const auto found = find_accumulation_loop(program);
  if (found->steps == count) return "";
  return fmt::format(
      "accumulation {} is loop {} run {} times where it was compiled for {}, with the "
      "micro batch it has",
      count, quoted(program[found->loop].name), count, found->steps);
}

class StepMaker {
 public:
  StepMaker(const Program& first, const NameList& names, const SizeRequest& request)
      : first_(first), names_(names), request_(request) {}

  std::optional<Error> add_compiled() { return add({}, first_, names_, {}); }

  std::optional<Error> add_resized(const Program& second) {
    if (auto wrong = check_request(request_)) return wrong;
    const auto scaler = ProgramScaler::make(
        first_, second, {std::string(name_of(request_.axis)), request_.first, request_.second});
    if (!scaler.ok()) return scaler.error();
    if (auto wrong = check_axis(first_, second, request_.axis)) return wrong;
    for (const double size : request_.sizes) {
      const Result<ScaledProgram> scaled = scaler->at(size);
      if (!scaled.ok()) return scaled.error();
      NameList names = names_;
      resize_names(growing_sizes(first_, scaled->program),
                   std::max(names.devices, first_.device_count()), names);
      StepSize step;
      (request_.axis == SizeAxis::kBatch ? step.batch : step.sequence) = size;
      if (auto wrong = add(step, scaled->program, names,
                           scale_notes(*scaler, first_, second, size, *scaled)))
        return wrong;
    }
    return std::nullopt;
  }

  std::vector<SizedStep> steps() { return std::move(steps_); }

 private:
  /// With every accumulation asked for.
  std::optional<Error> add(const StepSize& size, const Program& program, const NameList& names,
                           const std::vector<std::string>& assumptions) {
    if (request_.accumulations.empty()) return push(size, program, names, assumptions);
    for (const std::int64_t count : request_.accumulations) {
      const Result<Program> made = with_accumulation(program, count);
      if (!made.ok()) return made.error();
      StepSize step = size;
      step.accumulation = count;
      // What is the same for every count is said once.
      std::vector<std::string> said;
      if (count == request_.accumulations.front()) said = assumptions;
      if (auto note = accumulation_note(program, count); !note.empty()) said.push_back(note);
      if (auto wrong = push(step, *made, names, said)) return wrong;
    }
    return std::nullopt;
  }

  std::optional<Error> push(const StepSize& size, const Program& program, const NameList& names,
                            const std::vector<std::string>& assumptions) {
    Result<Schedule> schedule = text_schedule(program);
    if (!schedule.ok()) return schedule.error();
    steps_.push_back({size, program, std::move(schedule).value(), names, assumptions});
    return std::nullopt;
  }

  const Program& first_;
  const NameList& names_;
  const SizeRequest& request_;
  std::vector<SizedStep> steps_;
};

}  // namespace

std::string size_text(const StepSize& size) {
  std::string text;
  const auto add = [&text](const char* what, double value) {
    text += fmt::format("{}{} {:g}", text.empty() ? "" : ", ", what, value);
  };
  if (size.batch) add("batch", *size.batch);
  if (size.sequence) add("sequence", *size.sequence);
  if (size.accumulation) add("accumulation", static_cast<double>(*size.accumulation));
  return text;
}

std::string_view name_of(SizeAxis axis) { return axis == SizeAxis::kBatch ? "batch" : "sequence"; }

Result<std::vector<SizedStep>> make_sized_steps(const Program& first, const Program* second,
                                                const NameList& names, const SizeRequest& request) {
  StepMaker maker(first, names, request);
  check(request.sizes.empty() || second != nullptr, "sizes are asked for without a second program");
  const auto wrong = request.sizes.empty() ? maker.add_compiled() : maker.add_resized(*second);
  if (wrong) return *wrong;
  return maker.steps();
}

}  // namespace spillway
