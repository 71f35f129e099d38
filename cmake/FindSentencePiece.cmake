# Finds SentencePiece, which has no CMake file of its own: what tools/sentencepiece.sh has built, else
# the system's (libsentencepiece-dev). Defines gossamer_sentencepiece.
set(sentencepiece_built ${PROJECT_SOURCE_DIR}/.cache/sentencepiece)
find_path(SENTENCEPIECE_HEADERS sentencepiece_trainer.h HINTS ${sentencepiece_built}/include)
find_library(SENTENCEPIECE_LIBRARY sentencepiece HINTS ${sentencepiece_built}/lib)
find_library(SENTENCEPIECE_TRAIN_LIBRARY sentencepiece_train HINTS ${sentencepiece_built}/lib)
if(NOT SENTENCEPIECE_HEADERS OR NOT SENTENCEPIECE_LIBRARY OR NOT SENTENCEPIECE_TRAIN_LIBRARY)
  message(FATAL_ERROR "[cmake] SentencePiece is missing; PYTHON=python3 "
                      "tools/sentencepiece.sh builds it; or apt-get install libsentencepiece-dev")
endif()
add_library(gossamer_sentencepiece INTERFACE)
target_include_directories(gossamer_sentencepiece SYSTEM INTERFACE ${SENTENCEPIECE_HEADERS})
# Its version stands in its pkg-config file only; empty: unknown, which counts as old.
get_filename_component(sentencepiece_folder ${SENTENCEPIECE_LIBRARY} DIRECTORY)
find_file(SENTENCEPIECE_PC sentencepiece.pc
  HINTS ${sentencepiece_folder}/pkgconfig ${sentencepiece_folder}/../share/pkgconfig)
set(sentencepiece_version "")
if(SENTENCEPIECE_PC)
  file(STRINGS ${SENTENCEPIECE_PC} sentencepiece_line REGEX "^Version:")
  string(REGEX REPLACE "^Version: *" "" sentencepiece_version "${sentencepiece_line}")
endif()
target_compile_definitions(gossamer_sentencepiece INTERFACE
  "GOSSAMER_SENTENCEPIECE_VERSION=\"${sentencepiece_version}\"")
# The Python module is made of the same layer and calls none of it. What a static one brings, parts of
# protobuf, stays hidden: torch has its own.
target_link_libraries(gossamer_sentencepiece INTERFACE
  -Wl,--push-state,--as-needed ${SENTENCEPIECE_TRAIN_LIBRARY} ${SENTENCEPIECE_LIBRARY}
  -Wl,--pop-state -Wl,--exclude-libs,libsentencepiece.a:libsentencepiece_train.a)
