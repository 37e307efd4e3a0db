// Weights in files (Weights.h).
#pragma once

#include <wengert/Weights.h>
