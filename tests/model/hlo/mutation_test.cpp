// Damaged programs, thousands of them, and instructions put together at random: whatever passes the
// readers must be safe for every stage behind them. Each batch runs in a process of its own, so
// that a crash names its seed.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "model/base/read_file.h"
#include "model/program/opcode.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/mutate_proto.h"
#include "tests/fuzz/odd_program.h"
#include "tests/fuzz/use_program.h"
#include "tests/golden.h"

namespace spillway {
namespace {

/// How many times more mutants than usual: SPILLWAY_MUTATIONS=50 for a long search.
std::uint32_t effort() {
  const char* const wanted = std::getenv("SPILLWAY_MUTATIONS");
  return wanted == nullptr ? 1 : static_cast<std::uint32_t>(std::max(1, std::atoi(wanted)));
}

/// What a child reports while it works; lives in memory shared with it.
struct Progress {
  std::uint32_t seed = 0;
  std::uint32_t accepted = 0;
};

constexpr unsigned kSecondsForBatch = 120;

/// The text of a seed.
using Maker = std::function<std::string(std::uint32_t seed)>;

void run_batch(const Maker& make, std::uint32_t first, std::uint32_t count, Progress& progress) {
  ::alarm(kSecondsForBatch);
  for (std::uint32_t seed = first; seed < first + count; ++seed) {
    progress.seed = seed;
    if (testing::use_program(std::make_shared<const std::string>(make(seed)))) ++progress.accepted;
  }
}

/// Uses `count` texts; returns how many passed as programs.
std::uint32_t use_texts(const Maker& make, std::uint32_t count) {
  void* const shared =
      ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  auto& progress = *new (shared) Progress;
  constexpr std::uint32_t kBatch = 50;
  for (std::uint32_t first = 0; first < count; first += kBatch) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      run_batch(make, first, std::min(kBatch, count - first), progress);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK_MESSAGE(status == 0, "seed " << progress.seed << " ended with status " << status);
  }
  const std::uint32_t accepted = progress.accepted;
  ::munmap(shared, sizeof(Progress));
  return accepted;
}

using Mutate = std::string (*)(const std::string&, std::uint32_t);

std::uint32_t use_mutants(const std::string& content, std::uint32_t count,
                          Mutate mutate = testing::mutate) {
  return use_texts([&](std::uint32_t seed) { return mutate(content, seed); }, count);
}

TEST_CASE("damaged small programs do no harm") {
  for (const char* name : {"scan.txt", "old_forms.txt", "inner_text.txt"}) {
    CAPTURE(std::string(name));
    const std::string text =
        testing::read_text(testing::source_path(std::string("tests/fuzz/hlo_text_seeds/") + name));
    CHECK(testing::use_program(std::make_shared<const std::string>(text)));
    const std::uint32_t mutants = 1000 * effort();
    const std::uint32_t accepted = use_mutants(text, mutants);
    CHECK(accepted > mutants / 100);  // else nothing behind the readers is tried
    CHECK(accepted < mutants);
  }
}

TEST_CASE("damaged dumps do no harm") {
  for (const char* name : {"keep", "offload_all", "offload_qkv"}) {
    CAPTURE(std::string(name));
    const auto text =
        read_file(testing::source_path(std::string("examples/jax/dumps/") + name +
                                       "/jit_train_step.sm_10.0a_gpu_after_optimizations.txt.gz"));
    REQUIRE(text.ok());
    CHECK(testing::use_program(*text));
    use_mutants(**text, 50 * effort());
  }
}

TEST_CASE("any opcode with any shape, operands and attributes does no harm") {
  std::uint32_t opcodes_accepted = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(Opcode::kUnknown); ++i) {
    const std::string opcode(opcode_name(static_cast<Opcode>(i)));
    CAPTURE(opcode);
    const std::uint32_t accepted =
        use_texts([&opcode](std::uint32_t seed) { return testing::odd_program(opcode, seed); },
                  150 * effort());
    opcodes_accepted += accepted > 0 ? 1 : 0;
  }
  CHECK(opcodes_accepted > 50);  // else little behind the readers is tried
}

TEST_CASE("damaged protos do no harm") {
  for (const char* name : {"step", "everything"}) {
    CAPTURE(std::string(name));
    const std::string proto = testing::read_text(
        testing::source_path(std::string("tests/fuzz/hlo_proto_seeds/") + name + ".hlo.pb"));
    CHECK(testing::use_program(std::make_shared<const std::string>(proto)));
    const std::uint32_t mutants = 1000 * effort();
    const std::uint32_t accepted = use_mutants(proto, mutants, testing::mutate_proto);
    CHECK(accepted > mutants / 50);
    CHECK(accepted < mutants);
    for (std::size_t size = 0; size < proto.size(); ++size)
      testing::use_program(std::make_shared<const std::string>(proto.substr(0, size)));
  }

  const auto dump =
      read_file(testing::source_path("examples/jax/dumps/offload_qkv/"
                                     "jit_train_step.sm_10.0a_gpu_after_optimizations.hlo.pb.gz"));
  REQUIRE(dump.ok());
  CHECK(testing::use_program(*dump));
  use_mutants(**dump, 100 * effort(), testing::mutate_proto);
}

}  // namespace
}  // namespace spillway
