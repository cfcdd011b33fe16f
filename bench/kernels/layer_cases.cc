#include <string>
#include <utility>
#include <vector>

#include "bench/kernels/op_cases.h"
#include "kernels/layer/embed.h"
#include "kernels/layer/matmul.h"
#include "kernels/layer/rms_norm.h"
#include "kernels/layer/swiglu.h"

namespace tiercel {
namespace {

constexpr double kFloat = sizeof(float);

// The matrices of one call, which read the same x.
struct Product {
  const char* part;
  std::vector<int64_t> outputs;
  int64_t k;
};

// `fast`: by the matrix unit's f16, where that fits.
OpCase MatmulCase(Inputs& inputs, const ModelShape& model,
                  const Product& product, DType type, int64_t rows,
                  bool fast = false) {
  int64_t n = 0;
  int64_t bytes = 0;
  for (const int64_t output : product.outputs) {
    n += output;
    bytes += *PackedMatrix::BytesOf(type, output, product.k);
  }
  OpCase one = {.op = fast ? "matmul_fast" : "matmul",
                .model = model.name,
                .part = product.part,
                .type = std::string(InfoOf(type).name),
                .rows = rows};
  const auto r = static_cast<double>(rows);
  one.bytes = static_cast<double>(bytes) +
              r * kFloat * static_cast<double>(n + product.k);
  one.operations =
      2 * r * static_cast<double>(n) * static_cast<double>(product.k);
  one.call = [&inputs, product, type, rows, fast](Stream& stream,
                                                  int64_t turn) {
    MatmulParams p = {};
    p.fast = fast;
    p.x = inputs.Floats(rows * product.k, turn);
    p.x_stride = product.k;
    p.rows = rows;
    p.compute = Compute::kQ8;
    p.num_outputs = static_cast<int>(product.outputs.size());
    PackedMatrix weights[3];
    DevicePtr<float> out = inputs.Out();
    for (size_t i = 0; i < product.outputs.size(); ++i) {
      const int64_t width = product.outputs[i];
      // Each matrix has a place of its own.
      weights[i] =
          inputs.Matrix(type, width, product.k,
                        turn * p.num_outputs + static_cast<int64_t>(i));
      p.outputs[i] = {&weights[i], nullptr, out, width, StoreMode::kAssign};
      out += rows * width;
    }
    return Matmul(stream, p);
  };
  return one;
}

OpCase Between(const char* op, const ModelShape& model, int64_t rows,
               int64_t read, int64_t written) {
  OpCase one = {.op = op, .model = model.name, .type = "f32", .rows = rows};
  one.bytes = kFloat * static_cast<double>(rows * (read + written));
  return one;
}

}  // namespace

std::vector<OpCase> LayerCases(Inputs& inputs, const ModelShape& m,
                               const CaseSizes& sizes) {
  std::vector<Product> products = {
      {"qkv", {m.QueryWidth(), m.KvWidth(), m.KvWidth()}, m.hidden},
      {"o", {m.hidden}, m.QueryWidth()}};
  if (m.ffn > 0) {
    products.push_back({"gate_up", {m.ffn, m.ffn}, m.hidden});
    products.push_back({"down", {m.hidden}, m.ffn});
  }
  const Product logits = {"output", {m.vocab}, m.hidden};

  std::vector<OpCase> cases;
  for (const DType type : {DType::kF16, DType::kQ8_0, DType::kQ4_K}) {
    for (const int64_t rows : sizes.rows) {
      for (const Product& product : products) {
        cases.push_back(MatmulCase(inputs, m, product, type, rows));
        if (rows > 1) {
          cases.push_back(
              MatmulCase(inputs, m, product, type, rows, /*fast=*/true));
        }
      }
      // Only the last row of a prompt has logits.
      if (rows <= 64) {
        cases.push_back(MatmulCase(inputs, m, logits, type, rows));
      }
    }
  }
  // One product tells how the rest of a type's would do.
  for (const DType type : {DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4,
                           DType::kQ3_K, DType::kQ2_K}) {
    for (const int64_t rows : sizes.rows) {
      cases.push_back(MatmulCase(inputs, m, products.back(), type, rows));
      if (rows > 1) {
        cases.push_back(MatmulCase(inputs, m, products.back(), type, rows,
                                   /*fast=*/true));
      }
    }
  }
  for (const int64_t rows : sizes.rows) {
    OpCase norm = Between("rms_norm", m, rows, m.hidden, m.hidden);
    norm.call = [&inputs, m, rows](Stream& stream, int64_t turn) {
      const auto hidden = static_cast<int>(m.hidden);
      return RmsNorm(stream, {inputs.Floats(rows * m.hidden, turn), m.hidden,
                              inputs.Floats(m.hidden, 0), 1e-5f, rows,
                              /*groups=*/1, hidden, inputs.Out(), m.hidden});
    };
    cases.push_back(std::move(norm));

    if (m.ffn > 0) {
      OpCase swiglu = Between("swiglu", m, rows, 2 * m.ffn, m.ffn);
      swiglu.call = [&inputs, m, rows](Stream& stream, int64_t turn) {
        return Swiglu(stream, {inputs.Floats(rows * m.ffn, 2 * turn),
                               inputs.Floats(rows * m.ffn, 2 * turn + 1), rows,
                               m.ffn, inputs.Out()});
      };
      cases.push_back(std::move(swiglu));
    }

    OpCase embed = Between("embed", m, rows, 0, m.hidden);
    embed.type = "q8_0";
    embed.bytes += static_cast<double>(rows * RowBytes(DType::kQ8_0, m.hidden));
    embed.call = [&inputs, m, rows](Stream& stream, int64_t turn) {
      const PackedMatrix table =
          inputs.Matrix(DType::kQ8_0, m.vocab, m.hidden, 0);
      std::vector<int32_t> ids(static_cast<size_t>(rows));
      for (size_t i = 0; i < ids.size(); ++i) {
        ids[i] = static_cast<int32_t>(
            (turn * 7919 + static_cast<int64_t>(i) * 104729) % m.vocab);
      }
      return Embed(stream, {&table, ids.data(), rows, inputs.Out()});
    };
    cases.push_back(std::move(embed));
  }
  return cases;
}

}  // namespace tiercel
