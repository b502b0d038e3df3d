#include "model/cost/library_call.h"

#include <doctest/doctest.h>

#include "model/base/json_value.h"
#include "model/cost/work.h"
#include "tests/model/cost/toy_machine.h"

namespace spillway {
namespace {

using testing::find_instruction;
using testing::toy_program;

Work work_of_call(const std::string& parameters, const std::string& call) {
  const Program program = toy_program("ENTRY %main () -> f32[] {\n" + parameters +
                                      "  %x = " + call + "\n  ROOT %end = f32[] constant(0)\n}\n");
  Work work = work_of(program, find_instruction(program, "x"));
  // Names in it point into the program's text.
  work.unknown = work.unknown.empty() ? "" : work.unknown == "mine" ? "mine" : "other";
  return work;
}

constexpr const char* kMatrices = R"(  %a = bf16[2,4,8]{2,1,0} parameter(0)
  %b = bf16[2,8,6]{2,1,0} parameter(1)
  %c = bf16[2,4,6]{2,1,0} parameter(2)
  %f = f8e4m3fn[4,8]{1,0} parameter(3)
  %g = f8e5m2[6,8]{1,0} parameter(4)
  %s = f32[] parameter(5)
  %e = f32[4,8]{1,0} parameter(6)
)";

std::string gemm_config(const char* precision) {
  return std::string(R"(backend_config={"gemm_backend_config":{"beta":0,)") +
         R"("dot_dimension_numbers":{"lhs_batch_dimensions":["0"],)" +
         R"("lhs_contracting_dimensions":["PLACE"],"rhs_batch_dimensions":["0"],)" +
         R"("rhs_contracting_dimensions":["1"]},"precision_config":{"operand_precision":[)" +
         precision + "]}}}";
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  return text.replace(text.find(what), what.size(), by);
}

TEST_CASE("cuBLAS calls are matrix products; their workspace is not traffic") {
  struct Row {
    std::string name;
    std::string call;
    double flops;
    const char* type;
    std::int64_t read, written;
  };
  const std::string batched = replaced(gemm_config(R"("DEFAULT","DEFAULT")"), "PLACE", "2");
  const std::string flat = replaced(gemm_config(R"("DEFAULT","DEFAULT")"), "PLACE", "1");
  const std::string exact = replaced(gemm_config(R"("HIGHEST","HIGHEST")"), "PLACE", "1");
  const Row rows[] = {
      {"lt",
       "(bf16[2,4,6]{2,1,0}, s8[1000]{0}) custom-call(%a, %b), "
       "custom_call_target=\"__cublas$lt$matmul\", " +
           batched,
       2.0 * 48 * 8, "bf16", 128 + 192, 96},
      {"gemm with C",
       "(bf16[2,4,6]{2,1,0}, s8[1000]{0}) custom-call(%a, %b, %c), "
       "custom_call_target=\"__cublas$gemm\", " +
           batched,
       2.0 * 48 * 8, "bf16", 128 + 192 + 96, 96},
      {"fp8",
       "(bf16[4,6]{1,0}, s8[64]{0}) custom-call(%f, %g, %s, %s), "
       "custom_call_target=\"__cublas$lt$matmul$f8\", " +
           flat,
       2.0 * 24 * 8, "f8e4m3fn", 32 + 48 + 4, 48},
      {"exact f32",
       "f32[4,4]{1,0} custom-call(%e, %e), custom_call_target=\"__cublas$gemm\", " + exact,
       2.0 * 16 * 8, "f32", 128, 64},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Work work = work_of_call(kMatrices, row.call);
    CHECK(work.kernel == KernelClass::kGemm);
    CHECK(work.ops.dot_flops == Flops(row.flops));
    CHECK(work.ops.library_flops == Flops(row.flops));
    CHECK(work.ops.matrix_type == row.type);
    CHECK(work.traffic.hbm_read == Bytes(row.read));
    CHECK(work.traffic.hbm_written == Bytes(row.written));
    CHECK(work.unknown.empty());
  }
}

// batch 2, 16 queries and keys, 4 heads of q and 2 of k and v; heads of 8, of v 4
constexpr const char* kHeads = R"(  %q = bf16[2,16,4,8]{3,2,1,0} parameter(0)
  %k = bf16[2,16,2,8]{3,2,1,0} parameter(1)
  %v = bf16[2,16,2,4]{3,2,1,0} parameter(2)
  %stats = f32[2,4,16]{2,1,0} parameter(3)
  %do = bf16[2,16,4,4]{3,2,1,0} parameter(4)
)";

std::string attention_config(const std::string& dimensions, const std::string& mask) {
  return R"(backend_config={"cudnn_fmha_backend_config":{)" + dimensions +
         R"(,"intermediate_tensor_shape":{"dimensions":["2","4","16","16"]},"mask_type":")" + mask +
         "\"}}";
}

const std::string kForward =
    R"("bmm1_dot_dimension_numbers":{"lhs_batch_dimensions":["0","2"],"lhs_contracting_dimensions":["3"],"rhs_batch_dimensions":["0","2"],"rhs_contracting_dimensions":["3"]},)"
    R"("bmm2_dot_dimension_numbers":{"lhs_batch_dimensions":["0","1"],"lhs_contracting_dimensions":["3"],"rhs_batch_dimensions":["0","2"],"rhs_contracting_dimensions":["1"]})";
const std::string kBackward =
    R"("bmm1_grad_gemm2_dot_dimension_numbers":{"lhs_batch_dimensions":["0","1"],"lhs_contracting_dimensions":["3"],"rhs_batch_dimensions":["0","2"],"rhs_contracting_dimensions":["1"]},)"
    R"("bmm2_grad_gemm2_dot_dimension_numbers":{"lhs_batch_dimensions":["0","2"],"lhs_contracting_dimensions":["3"],"rhs_batch_dimensions":["0","2"],"rhs_contracting_dimensions":["3"]})";

TEST_CASE("cuDNN attention is counted from its shapes, with and without its mask") {
  const std::string forward =
      "(bf16[2,4,16,4]{3,1,2,0}, f32[2,4,16]{2,1,0}, u8[32]{0}) custom-call(%q, %k, %v), "
      "custom_call_target=\"__cudnn$fmhaSoftmax\", ";
  const std::string backward =
      "(bf16[2,4,16,8]{3,1,2,0}, bf16[2,2,16,8]{3,1,2,0}, bf16[2,2,16,4]{3,1,2,0}, u8[0]{0}) "
      "custom-call(%q, %k, %v, %stats, %do, %do), "
      "custom_call_target=\"__cudnn$fmhaSoftmaxBackward\", ";
  constexpr double kHeadsOfBatch = 8;
  constexpr double kPairs = 16 * 16;
  struct Row {
    std::string name;
    std::string call;
    KernelClass kernel;
    double flops, unmasked;
  };
  const double one_way = 2 * kHeadsOfBatch * kPairs * (8 + 4);
  const double back = 2 * kHeadsOfBatch * kPairs * (3 * 8 + 2 * 4);
  const Row rows[] = {
      {"no mask", forward + attention_config(kForward, "NO_MASK"), KernelClass::kAttentionForward,
       one_way, one_way},
      {"causal", forward + attention_config(kForward, "CAUSAL"), KernelClass::kAttentionForward,
       one_way / 2, one_way},
      {"padding counts as work", forward + attention_config(kForward, "PADDING"),
       KernelClass::kAttentionForward, one_way, one_way},
      {"backward", backward + attention_config(kBackward, "CAUSAL"),
       KernelClass::kAttentionBackward, back / 2, back},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Work work = work_of_call(kHeads, row.call);
    CHECK(work.kernel == row.kernel);
    CHECK(work.ops.attention_flops == Flops(row.flops));
    CHECK(work.ops.unmasked_attention_flops == Flops(row.unmasked));
    CHECK(work.ops.dot_flops == Flops(0));
    CHECK(work.ops.matrix_type == "bf16");
    CHECK(work.unknown.empty());
  }
  // q, k, v read; context and statistics written, the workspace not.
  const Work work = work_of_call(kHeads, rows[0].call);
  CHECK(work.traffic.hbm_read == Bytes(2048 + 1024 + 512));
  CHECK(work.traffic.hbm_written == Bytes(1024 + 512));
}

TEST_CASE("a sliding window bounds what a causal query sees") {
  const std::string config = attention_config(kForward + R"(,"sliding_window_length":4)", "CAUSAL");
  const Work work = work_of_call(
      kHeads,
      "(bf16[2,4,16,4]{3,1,2,0}, f32[2,4,16]{2,1,0}, u8[0]{0}) custom-call(%q, %k, %v), "
      "custom_call_target=\"__cudnn$fmhaSoftmax\", " +
          config);
  // 16^2 / 2 pairs less the (16 - 4)^2 / 2 that lie further back than the window
  CHECK(work.ops.attention_flops == Flops(2 * 8 * (128 - 72) * (8 + 4)));
}

TEST_CASE("what nobody knows is named and bounded from below") {
  const Work work = work_of_call(
      kMatrices, "bf16[2,4,6]{2,1,0} custom-call(%a, %b), custom_call_target=\"mine\"");
  CHECK(work.kernel == KernelClass::kUnknown);
  CHECK(work.unknown == "mine");
  CHECK(work.traffic.hbm_read == Bytes(128 + 192));
  CHECK(work.traffic.hbm_written == Bytes(96));
  CHECK(work.ops.dot_flops == Flops(0));

  SUBCASE("a cuDNN call without its sizes is unknown too") {
    const Work attention =
        work_of_call(kHeads,
                     "bf16[2,4,16,4]{3,1,2,0} custom-call(%q, %k, %v), "
                     "custom_call_target=\"__cudnn$fmhaSoftmax\", backend_config={}");
    CHECK(attention.kernel == KernelClass::kUnknown);
    CHECK(attention.unknown == "other");
  }
  SUBCASE("a call that only names a buffer is free") {
    const Work buffer =
        work_of_call("", "bf16[8]{0} custom-call(), custom_call_target=\"AllocateBuffer\"");
    CHECK(buffer.kernel == KernelClass::kFree);
    CHECK(buffer.traffic.hbm_written == Bytes(0));
  }
}

TEST_CASE("fields are found in JSON without reading all of it") {
  const std::string_view json =
      R"({"a": 1, "xa": 2, "text": "with \"a\" and {", "list":["3","4"], "o" : {"b":[{}],"c":7}})";
  CHECK(json_value(json, "a") == "1");
  CHECK(json_value(json, "list") == R"(["3","4"])");
  CHECK(json_value(json, "o") == R"({"b":[{}],"c":7})");
  CHECK(json_value(json, "c") == "7");
  CHECK(json_value(json, "none").empty());
  CHECK(json_value(R"({"cut":)", "cut").empty());
  CHECK(json_value(R"({"cut":{"a)", "cut") == R"({"a)");
  CHECK(json_value("", "a").empty());
}

}  // namespace
}  // namespace spillway
