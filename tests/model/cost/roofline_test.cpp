#include "model/cost/roofline.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/model/cost/toy_machine.h"

namespace spillway {
namespace {

using testing::toy_machine;

/// So many operations on elements, and bytes read from HBM.
Work work_of_class(KernelClass kernel, double operations, std::int64_t bytes) {
  Work work{.kernel = kernel};
  work.element_ops = Flops(operations);
  work.traffic.hbm_read = Bytes(bytes);
  return work;
}

Work matrix_work(const char* type, double flops, std::int64_t bytes) {
  Work work = work_of_class(KernelClass::kGemm, 0, bytes);
  work.ops.dot_flops = Flops(flops);
  work.ops.matrix_type = type;
  return work;
}

Work attention_work(KernelClass kernel, double flops) {
  Work work{.kernel = kernel};
  work.ops.attention_flops = Flops(flops);
  work.ops.unmasked_attention_flops = Flops(2 * flops);
  work.ops.matrix_type = "bf16";
  return work;
}

Work unknown_work() {
  Work work = work_of_class(KernelClass::kUnknown, 0, 320);
  work.unknown = "mine";
  return work;
}

TEST_CASE("arithmetic and memory hide behind each other where they are far apart") {
  struct Row {
    std::string name;
    Work work;
    Seconds time;
    Bound bound;
  };
  const Row rows[] = {
      {"all flops", work_of_class(KernelClass::kElementwise, 80, 0), Seconds(10), Bound::kCompute},
      {"all bytes", work_of_class(KernelClass::kElementwise, 0, 320), Seconds(10), Bound::kMemory},
      {"far more flops", work_of_class(KernelClass::kRowReduce, 80'000, 32), Seconds(10'000),
       Bound::kCompute},
      {"far more bytes", work_of_class(KernelClass::kRowReduce, 8, 320'000), Seconds(10'000),
       Bound::kMemory},
      {"both", work_of_class(KernelClass::kRowReduce, 80, 320),
       Seconds(10 * std::sqrt(std::sqrt(2.0))), Bound::kMemory},
      {"two thirds of the flops", work_of_class(KernelClass::kRowReduce, 16, 96),
       Seconds(3 * std::sqrt(std::sqrt(1 + 16.0 / 81))), Bound::kMemory},
      {"nothing", work_of_class(KernelClass::kElementwise, 0, 0), Seconds(0), Bound::kLaunch},
      {"matrix flops", matrix_work("bf16", 80, 32), Seconds(10), Bound::kCompute},
      {"f32 on tensor cores", matrix_work("tf32", 80, 0), Seconds(10), Bound::kCompute},
      {"f32 at full precision", matrix_work("f32", 80, 0), Seconds(10), Bound::kCompute},
      {"every eight-bit float", matrix_work("f8e5m2", 80, 0), Seconds(5), Bound::kCompute},
      {"a type without a peak", matrix_work("s8", 80, 0), Seconds(10), Bound::kCompute},
      {"attention", attention_work(KernelClass::kAttentionForward, 80), Seconds(10),
       Bound::kCompute},
      {"unknown", unknown_work(), Seconds(10), Bound::kUnknown},
      {"free", Work{}, Seconds(0), Bound::kNone},
  };
  HardwareProfile machine = toy_machine();
  machine.kernels.vector.value = Factor(1);
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Cost cost = roofline(row.work, machine);
    CHECK(cost.time.value() == doctest::Approx(row.time.value()).epsilon(1e-9));
    CHECK(name_of(cost.bound) == name_of(row.bound));
    CHECK(cost.hbm_bytes == row.work.traffic.hbm_read);
    CHECK(cost.uses_sms == (row.work.kernel != KernelClass::kFree));
    CHECK(cost.kernel == row.work.kernel);
  }
}

TEST_CASE("each class takes its own factor") {
  HardwareProfile machine = toy_machine();
  machine.kernels.gemm["bf16"].value = Factor(2);
  machine.kernels.gemm["f8"].value = Factor(3);
  machine.kernels.attention_forward.value = Factor(4);
  machine.kernels.attention_backward.value = Factor(5);
  machine.kernels.elementwise.value = Factor(6);
  machine.kernels.row_reduce.value = Factor(7);
  machine.kernels.column_reduce.value = Factor(8);
  machine.kernels.transpose.value = Factor(9);
  machine.kernels.copy.value = Factor(10);
  machine.kernels.vector.value = Factor(11);
  struct Row {
    std::string name;
    Work work;
    double time;
  };
  const Row rows[] = {
      {"bf16", matrix_work("bf16", 8, 0), 2},
      {"a type without a factor takes that of bf16", matrix_work("tf32", 8, 0), 2},
      {"f8", matrix_work("f8e4m3fn", 16, 0), 3},
      {"forward", attention_work(KernelClass::kAttentionForward, 8), 4},
      {"backward", attention_work(KernelClass::kAttentionBackward, 8), 5},
      {"elementwise", work_of_class(KernelClass::kElementwise, 0, 32), 6},
      {"arithmetic", work_of_class(KernelClass::kElementwise, 8, 0), 11},
      {"tiled transpose", work_of_class(KernelClass::kTiledTranspose, 0, 32), 6},
      {"sort", work_of_class(KernelClass::kSort, 0, 32), 6},
      {"row reduce", work_of_class(KernelClass::kRowReduce, 0, 32), 7},
      {"column reduce", work_of_class(KernelClass::kColumnReduce, 0, 32), 8},
      {"transpose", work_of_class(KernelClass::kTranspose, 0, 32), 9},
      {"copy", work_of_class(KernelClass::kCopy, 0, 32), 10},
      {"slice copy", work_of_class(KernelClass::kSliceCopy, 0, 32), 10},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(roofline(row.work, machine).time == Seconds(row.time));
  }
}

TEST_CASE("a launch comes before the work, and bounds what is small") {
  HardwareProfile machine = toy_machine();
  machine.kernels.launch_floor.value = Seconds(4);
  machine.kernels.gemm_overhead.value = Seconds(3);
  machine.kernels.gap.value = Seconds(2);
  const Cost below = roofline(work_of_class(KernelClass::kElementwise, 0, 4 * 32 - 1), machine);
  CHECK(below.time.value() == doctest::Approx(8 - 1.0 / 32));
  CHECK(below.bound == Bound::kLaunch);
  CHECK(below.gap == Seconds(2));
  const Cost above = roofline(work_of_class(KernelClass::kElementwise, 0, 4 * 32 + 32), machine);
  CHECK(above.time == Seconds(9));
  CHECK(above.bound == Bound::kMemory);

  CHECK(roofline(matrix_work("bf16", 80, 0), machine).time == Seconds(13));
  CHECK(roofline(matrix_work("bf16", 80, 0), machine).bound == Bound::kCompute);
  CHECK(roofline(matrix_work("bf16", 16, 0), machine).time == Seconds(5));
  CHECK(roofline(matrix_work("bf16", 16, 0), machine).bound == Bound::kLaunch);

  Work copies = work_of_class(KernelClass::kCopy, 0, 32);
  copies.launches = 3;
  CHECK(roofline(copies, machine).time == Seconds(13));
  CHECK(roofline(copies, machine).gap == Seconds(6));
}

TEST_CASE("copies cross the host link without SMs, kernels reach through it") {
  HardwareProfile machine = toy_machine();
  machine.link.copy_latency.value = Seconds(1);
  machine.kernels.gap.value = Seconds(2);
  Work reload{.kernel = KernelClass::kSliceCopy, .is_memcpy = true};
  reload.traffic = {.hbm_written = Bytes(160), .host_read = Bytes(160)};
  CHECK(roofline(reload, machine) == Cost{.time = Seconds(11),
                                          .bound = Bound::kHostLink,
                                          .kernel = KernelClass::kSliceCopy,
                                          .uses_sms = false,
                                          .hbm_bytes = Bytes(160),
                                          .host_to_device = Bytes(160)});
  Work offload{.kernel = KernelClass::kCopy, .is_memcpy = true};
  offload.traffic = {.hbm_read = Bytes(160), .host_written = Bytes(160)};
  CHECK(roofline(offload, machine) == Cost{.time = Seconds(21),
                                           .bound = Bound::kHostLink,
                                           .kernel = KernelClass::kCopy,
                                           .uses_sms = false,
                                           .hbm_bytes = Bytes(160),
                                           .device_to_host = Bytes(160)});
  Work kernel{.kernel = KernelClass::kElementwise};
  kernel.traffic = {.hbm_written = Bytes(640), .host_read = Bytes(160)};
  CHECK(roofline(kernel, machine).time == Seconds(20));
  CHECK(roofline(kernel, machine).bound == Bound::kMemory);
  CHECK(roofline(kernel, machine).uses_sms);
  CHECK(roofline(kernel, machine).gap == Seconds(2));
  kernel.traffic.host_read = Bytes(640);
  CHECK(roofline(kernel, machine).time == Seconds(40));
  CHECK(roofline(kernel, machine).bound == Bound::kHostLink);

  Work within{.kernel = KernelClass::kCopy, .is_memcpy = true};
  within.traffic = {.hbm_read = Bytes(160), .hbm_written = Bytes(160)};
  CHECK(roofline(within, machine).time == Seconds(10));
  CHECK(roofline(within, machine).uses_sms == false);
  CHECK(roofline(within, machine).gap == Seconds(2));
}

}  // namespace
}  // namespace spillway
