// spillway-probe: measures the machine it runs on and writes one JSON file for `spillway
// calibrate`.
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "calibration/probe/cuda/cuda_device.h"
#include "calibration/probe/probe.h"
#include "calibration/probe/probe_json.h"

namespace spillway::probe {
namespace {

// As those of spillway itself.
constexpr int kDone = 0, kNo = 1, kWrongUsage = 2, kWrongInput = 3, kInternalError = 70;

constexpr const char* kUsage =
    "spillway-probe [--out FILE] [--seconds N] [--quick] [--largest MIB] [--seed N]\n"
    "Measures copies between host and device, memory, matrix products and launches of this\n"
    "machine's NVIDIA GPUs, and what they do to each other. The machine should be idle.\n"
    "  --out FILE      where the answer goes: one JSON object, for spillway calibrate --from FILE\n"
    "                  (standard output)\n"
    "  --seconds N     for the whole run (240); what has not settled by then is marked\n"
    "  --quick         fewer sizes and shapes\n"
    "  --largest MIB   the largest copy, and host memory for each kind of it (1024)\n"
    "  --seed N        of the order of measurements (1)\n";

struct Arguments {
  std::string out;
  PlanOptions plan;
  ProbeOptions probe;
  bool help = false;
};

std::optional<long long> number(std::string_view text) {
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1) return std::nullopt;
  return value;
}

/// Empty when the line is wrong, which was then said.
std::optional<Arguments> parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--help" || word == "-h") {
      arguments.help = true;
      continue;
    }
    if (word == "--quick") {
      arguments.plan.quick = true;
      continue;
    }
    const bool known =
        word == "--out" || word == "--seconds" || word == "--largest" || word == "--seed";
    if (!known || i + 1 == argc) {
      std::fprintf(stderr, "error: '%s' %s\n", argv[i],
                   known ? "needs a value" : "is not an option: see spillway-probe --help");
      return std::nullopt;
    }
    const std::string_view value = argv[++i];
    if (word == "--out") {
      arguments.out = value;
      continue;
    }
    const auto n = number(value);
    if (!n || (word == "--largest" && (*n < 16 || *n > 65536))) {
      std::fprintf(
          stderr, "error: %s is '%s': %s\n", argv[i - 1], argv[i],
          word == "--largest" ? "a whole number from 16 to 65536" : "a whole number from 1 up");
      return std::nullopt;
    }
    if (word == "--seconds") arguments.probe.seconds = static_cast<double>(*n);
    if (word == "--largest") arguments.plan.largest_copy = *n << 20;
    if (word == "--seed") arguments.probe.seed = static_cast<std::uint64_t>(*n);
  }
  return arguments;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

int write(const std::string& text, const std::string& path) {
  if (path.empty()) {
    const bool whole = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    return whole && std::fflush(stdout) == 0 ? kDone : kWrongInput;
  }
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return kDone;
  std::fprintf(stderr, "error: %s cannot be written\n", path.c_str());
  return kWrongInput;
}

int run(int argc, char** argv) {
  const std::optional<Arguments> arguments = parse(argc, argv);
  if (!arguments) return kWrongUsage;
  if (arguments->help) {
    std::fputs(kUsage, stdout);
    return kDone;
  }
  // Code that is loaded while a gate is closed would wait for the gate.
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  if (const std::string why = why_no_device(); !why.empty()) {
    std::fprintf(stderr,
                 "nothing to measure: %s\n"
                 "Run spillway-probe on the machine whose profile you want, and bring its file to "
                 "spillway calibrate; nvbandwidth's output will do, too.\n",
                 why.c_str());
    return kNo;
  }
  const std::unique_ptr<Device> device = make_cuda_device(arguments->plan.largest_copy);
  const ProbeRun result =
      run_plan(*device, make_plan(device->machine(), arguments->plan), arguments->probe,
               [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); });
  std::fprintf(stderr, "%zu points measured, %zu failed, %.0f s\n", result.measured.size(),
               result.failed.size(), result.seconds);
  if (const int written = write(to_json(result, today()), arguments->out); written != kDone)
    return written;
  return result.measured.empty() ? kNo : kDone;
}

}  // namespace
}  // namespace spillway::probe

int main(int argc, char** argv) {
  try {
    return spillway::probe::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "internal error: %s\n", e.what());
  }
  return spillway::probe::kInternalError;
}
