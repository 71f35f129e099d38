# What `pip install .` needs beyond a plain build; scikit-build-core has it included after project().

# The torch to build for is that of the Python that pip runs in.
set(GOSSAMER_PYTHON ${Python_EXECUTABLE})
set(GOSSAMER_TORCH ON)
set(GOSSAMER_TESTS OFF)
set(GOSSAMER_BENCHES OFF)
execute_process(
  COMMAND ${GOSSAMER_PYTHON} -c "import importlib.metadata as m; m.version('torch')"
  WORKING_DIRECTORY ${CMAKE_BINARY_DIR} RESULT_VARIABLE gossamer_torch_missing ERROR_QUIET)
if(gossamer_torch_missing)
  message(FATAL_ERROR "[cmake] no torch to build for, got ${GOSSAMER_PYTHON}; install torch and "
                      "scikit-build-core, then `pip install --no-build-isolation .`, for pip hides "
                      "installed packages from isolated builds")
endif()

# header, package of Debian and Ubuntu
set(gossamer_headers
  nlohmann/json.hpp nlohmann-json3-dev
  Eigen/Core libeigen3-dev
  zlib.h zlib1g-dev
  jpeglib.h libjpeg-dev
  png.h libpng-dev
  openssl/hmac.h libssl-dev
  isa-l/crc.h libisal-dev
  CLI/CLI.hpp libcli11-dev
  toml++/toml.h libtomlplusplus-dev)
set(gossamer_missing "")
set(gossamer_remedy "")
while(gossamer_headers)
  list(POP_FRONT gossamer_headers header package)
  find_path(gossamer_folder ${header} PATH_SUFFIXES eigen3 NO_CACHE)
  if(NOT gossamer_folder)
    string(APPEND gossamer_missing " ${header}")
    string(APPEND gossamer_remedy " ${package}")
  endif()
  unset(gossamer_folder)
endwhile()
if(gossamer_missing)
  message(FATAL_ERROR "[cmake] system libraries are missing, got no${gossamer_missing}; on Debian "
                      "and Ubuntu: apt-get install${gossamer_remedy}")
endif()

# Where it is not built yet. Where that fails, the system's is taken, or found missing.
if(NOT EXISTS ${CMAKE_SOURCE_DIR}/.cache/sentencepiece/version)
  message(STATUS "building SentencePiece: a minute, once")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env PYTHON=${GOSSAMER_PYTHON} bash tools/sentencepiece.sh
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} RESULT_VARIABLE gossamer_sentencepiece_failed
    OUTPUT_VARIABLE gossamer_sentencepiece_log ERROR_VARIABLE gossamer_sentencepiece_log)
  if(gossamer_sentencepiece_failed)
    message(WARNING "[cmake] SentencePiece cannot be built:\n${gossamer_sentencepiece_log}")
  endif()
endif()
