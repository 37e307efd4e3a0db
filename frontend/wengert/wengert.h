// Everything: `#include <wengert/wengert.h>`.
#pragma once

#include <wengert/Check.h>
#include <wengert/DLPack.h>
#include <wengert/Error.h>
#include <wengert/Function.h>
#include <wengert/GradientTape.h>
#include <wengert/Index.h>
#include <wengert/Numpy.h>
#include <wengert/Ops.h>
#include <wengert/Progress.h>
#include <wengert/Save.h>
#include <wengert/Tensor.h>
#include <wengert/Transforms.h>
#include <wengert/Tree.h>
#include <wengert/Variable.h>
#include <wengert/Version.h>
#include <wengert/data/Dataset.h>
#include <wengert/metrics/Metrics.h>
#include <wengert/nn/Initializers.h>
#include <wengert/nn/Module.h>
#include <wengert/optim/EarlyStopping.h>
#include <wengert/optim/GradientAccumulator.h>
#include <wengert/optim/Optimizer.h>
#include <wengert/optim/Parameters.h>
#include <wengert/optim/Schedules.h>
#include <wengert/optim/WeightAverage.h>
