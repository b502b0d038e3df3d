// A model's configuration in the words of the formulas by which frameworks log TFLOP/s.
#pragma once

#include "model/cost/training_flops.h"
#include "model/spec/model_spec.h"

namespace spillway {

/// Of a model all of whose groups attend alike: those of the last group are taken.
ModelDimensions dimensions_of(const ModelSpec& model);

}  // namespace spillway
