// Which checkpoint name a residual carries. HLO does not say; shape, place and order do.
#pragma once

#include "model/residuals/residuals.h"

namespace spillway {

/// Fills names and evidence of each residual, and lists the names that stayed without one.
/// `devices` is how many the program runs on, where the sidecar says less.
/// Rules, strongest first: the layer's input is the first name of its shape; a shape that one name
/// has is that name; among several names, one given a few lines behind what produces the residual;
/// what is left is paired in order. A stack whose dimensions XLA has put into another order is
/// compared by its sizes alone.
void match_names(const NameList& names, std::int64_t devices, ResidualTable& table);

}  // namespace spillway
