// How long one policy takes once the program is loaded: random policies, on one core, and a digest
// of what came out, to tell whether a change of the code changed a result.
//
//   build/dev/tests/policy_bench DUMP [PROFILE = gb200] [POLICIES = 1000] [SEED = 1]
//
// Times are of the processor, so that others on the machine disturb little.
#include <time.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "model/flags/known_flags.h"
#include "model/hardware/find_profile.h"
#include "model/hlo/read_program.h"
#include "model/residuals/names.h"
#include "sim/planner/evaluate.h"

namespace spillway {
namespace {

double now_ms() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

/// FNV-1a, of everything a case says.
class Digest {
 public:
  void add(std::uint64_t word) {
    for (int shift = 0; shift < 64; shift += 8)
      hash_ = (hash_ ^ ((word >> shift) & 0xff)) * 0x100000001b3U;
  }
  void add(double number) { add(std::bit_cast<std::uint64_t>(number)); }
  void add(Bytes bytes) { add(static_cast<std::uint64_t>(bytes.value())); }
  void add(const Result<PolicyCase>& result) {
    if (!result.ok()) {
      for (const char c : result.error().text) add(static_cast<std::uint64_t>(c));
      return;
    }
    const PolicyCase& it = *result;
    add(it.step.value());
    add(it.exposed_copies.value());
    for (const Bytes bytes : {it.peak_device, it.host, it.device_to_host, it.host_to_device})
      add(bytes);
    add(it.dot_flops);
    add(std::uint64_t{it.fit.fits});
  }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

/// Any choice for every handle that can be moved; what cannot take effect stands for something that
/// does.
std::vector<Policy> random_policies(const std::vector<Handle>& handles, std::size_t count,
                                    unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Policy> policies;
  for (std::size_t n = 0; n < count; ++n) {
    Policy policy = compiled_policy(handles);
    for (std::size_t k = 0; k < handles.size(); ++k) {
      const std::uint_fast32_t draw = random() % 3;  // drawn even if it is not used
      if (!handles[k].state || handles[k].fixed_because.empty())
        policy[k] = static_cast<Choice>(draw);
      if (policy[k] == Choice::kRecompute && !handles[k].saved_because.empty())
        policy[k] = handles[k].as_compiled;
      if (policy[k] == Choice::kOffload && !handles[k].device_only_because.empty())
        policy[k] = Choice::kKeep;
    }
    policies.push_back(std::move(policy));
  }
  return policies;
}

template <typename Evaluate>
void measure(const char* what, const std::vector<Policy>& policies, Evaluate evaluate) {
  std::vector<double> times;
  Digest digest;
  for (const Policy& policy : policies) {
    const double start = now_ms();
    const Result<PolicyCase> result = evaluate(policy);
    times.push_back(now_ms() - start);
    digest.add(result);
  }
  std::ranges::sort(times);
  std::printf("%-28s median %8.3f ms   90%% %8.3f ms   worst %8.3f ms   digest %016llx\n", what,
              times[times.size() / 2], times[times.size() * 9 / 10], times.back(),
              static_cast<unsigned long long>(digest.value()));
}

unsigned number(const char* text, unsigned otherwise) {
  const std::string_view all = text;
  std::from_chars(all.data(), all.data() + all.size(), otherwise);
  return otherwise;
}

int run(int argc, char** argv) {
  const std::filesystem::path dump = argv[1];
  const auto program = read_program(dump.string());
  const auto profile = find_profile(argc > 2 ? argv[2] : "gb200",
                                    {{std::string(SPILLWAY_SOURCE_DIR "/hw_profiles")}});
  if (!program.ok() || !profile.ok()) return 3;
  const auto sidecar = dump / "names.json";
  const NameList names =
      std::filesystem::exists(sidecar) ? read_names(sidecar.string()).value() : NameList();
  const Topology topology = make_topology(program->device_count(), *profile);
  const double start = now_ms();
  const Evaluator evaluator(*program, text_schedule(*program).value(), *profile, topology, names,
                            make_budget(*profile, topology, {}).value());
  std::printf("%s: %zu instructions, %zu handles, made ready in %.1f ms\n", dump.c_str(),
              program->instruction_count(), evaluator.handles().size(), now_ms() - start);
  const FlagContext context{newest_probed(), gpu_model(profile->device),
                            has_only_common_parts(*program)};
  const auto settings = schedule_settings({}, context);
  if (!settings) return 3;
  const auto policies =
      random_policies(evaluator.handles(), argc > 3 ? number(argv[3], 1000) : 1000,
                      argc > 4 ? number(argv[4], 1) : 1);
  measure("ordered as XLA would", policies,
          [&](const Policy& policy) { return evaluator.evaluate(policy, *settings); });
  measure("in the rewrite's own order", policies,
          [&](const Policy& policy) { return evaluator.evaluate(policy); });
  return 0;
}

}  // namespace
}  // namespace spillway

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("policy_bench DUMP [PROFILE] [POLICIES] [SEED]\n", stderr);
    return 2;
  }
  return spillway::run(argc, argv);
}
