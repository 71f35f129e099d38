#pragma once
/// The tests that every transport must pass. Include once per test program, then instantiate:
/// `INSTANTIATE_TEST_SUITE_P(Net, TransportConformance, testing::Values(Case{...}), name_of)`.

#include "gossamer/transport/conformance_failures.h"
#include "gossamer/transport/conformance_fixture.h"
#include "gossamer/transport/conformance_lending.h"
#include "gossamer/transport/conformance_messages.h"
