"""Flags that llama.cpp is built with: which processor gets which, and what the compiler needs for AMX."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from localsim.machine import build_flags
from localsim.machine.doctor import build_finding

AVX512 = frozenset("avx2 avx512f avx512bw avx512dq avx512vl avx512cd avx512_vnni avx512vbmi avx512_bf16".split())
AMX = AVX512 | {"amx_tile", "amx_int8", "amx_bf16"}
CURED = "-DCMAKE_CXX_FLAGS=-fno-dse"
PORTABLE_INFO = "CPU : SSE3 = 1 | AVX2 = 1 | REPACK = 1 | "
AVX512_INFO = "CPU : AVX2 = 1 | AVX512 = 1 | AVX512_VBMI = 1 | AVX512_VNNI = 1 | AVX512_BF16 = 1 | "

DROPPED = "load_tiles():\n\tpxor %xmm0, %xmm0\n\tmovb $1, -72(%rsp)\n\tmovups %xmm0, -71(%rsp)\n\tldtilecfg -72(%rsp)\n"
KEPT = DROPPED.replace(
    "\tldtilecfg",
    "\tmovzwl localsim_columns(%rip), %eax\n\tmovw %ax, -42(%rsp)\n"
    "\tmovzbl localsim_rows(%rip), %eax\n\tmovb %al, -17(%rsp)\n\tldtilecfg",
)
NAMED = DROPPED + '\t.string "localsim_rows"\n\t.string "localsim_columns"\n'
"""Debugging symbols name the variables whose stores were thrown away."""
CLANG = re.sub(r"(localsim_\w+)\(", r"\1@GOTPCREL(", KEPT)

PLANTED = r"""#!/bin/sh
out= cure= amx=
for word in "$0" "$@"; do
    [ "$last" = -o ] && out=${word%.o}
    case $word in -fno-dse) cure=1;; -mamx-tile) amx=1;; esac
    last=$word
done
here=$(dirname "$0")
echo "$@" >> "$here/calls"
"""
GCC_12_2 = "c++ (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright (C) 2022 Free Software Foundation, Inc.\n"


def plant(folder: Path, without: str | None, cured: str | None, *, otherwise: bool = True, version: str = "") -> Path:
    """A compiler that writes this assembly without and with the flag; None where it refuses, as any other program."""
    folder.mkdir(exist_ok=True)
    lines = [PLANTED]
    for name, text in (("without", without), ("cured", cured), ("version", version)):
        (folder / name).write_text(text or "")
    lines.append('case "$*" in *--version*) cat "$here/version"; exit 0;; esac')
    lines.append('if [ "$amx$cure" = 11 ]; then ' + _writes("cured", cured) + "; fi")
    lines.append('if [ "$amx" = 1 ]; then ' + _writes("without", without) + "; fi")
    lines.append('touch "$out.s" "$out.o"' if otherwise else "exit 1")
    path = folder / "c++"
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o755)
    return path


def _writes(name: str, text: str | None) -> str:
    return "exit 1" if text is None else f'cp "$here/{name}" "$out.s"; touch "$out.o"; exit 0'


def calls(compiler: Path) -> list[str]:
    """The command lines of a planted compiler."""
    return (compiler.parent / "calls").read_text().splitlines()


# ---- which flags ---------------------------------------------------------------------------------------------------


def test_avx512_is_used() -> None:
    fast, portable = build_flags.candidates(AVX512, "x86_64")
    assert portable == build_flags.PORTABLE and portable in fast
    assert all(name in fast for name in ("AVX512=ON", "VNNI=ON", "VBMI=ON", "BF16=ON")) and "AMX" not in fast


@pytest.mark.parametrize("cure", ["", "-fno-dse"])
def test_amx_comes_first_then_avx512(cure: str) -> None:
    amx, *others = build_flags.candidates(AMX, "x86_64", cure=cure)
    assert others == build_flags.candidates(AVX512, "x86_64")
    added = "-DGGML_AMX_TILE=ON -DGGML_AMX_INT8=ON -DGGML_AMX_BF16=ON"
    assert amx == f"{others[0]} {added}" + (f" {CURED}" if cure else "")
    assert build_flags.candidates(AMX, "x86_64", "cuda", cure)[0] == f"-DGGML_CUDA=ON {amx}"


def test_amx_without_bfloat16() -> None:
    amx = build_flags.candidates(AMX - {"amx_bf16"}, "x86_64", cure="")[0]
    assert "AMX_INT8=ON" in amx and "AMX_BF16" not in amx


@pytest.mark.parametrize("missing", ["amx_tile", "amx_int8", "avx512_vnni", "avx512bw"])
def test_half_of_amx_is_none(missing: str) -> None:
    assert not any("AMX" in flags for flags in build_flags.candidates(AMX - {missing}, "x86_64", cure=""))


def test_a_compiler_that_cannot_means_no_amx() -> None:
    assert build_flags.candidates(AMX, "x86_64", cure=None) == build_flags.candidates(AVX512, "x86_64")


@pytest.mark.parametrize("missing", ["avx512f", "avx512vl"])
def test_half_of_avx512_is_none(missing: str) -> None:
    assert build_flags.candidates(AMX - {missing}, "x86_64", cure="") == [build_flags.PORTABLE]


def test_what_a_build_leaves_unused() -> None:
    most = ["avx512f", "avx512_vnni", "avx512vbmi", "avx512_bf16"]
    assert build_flags.unused(AVX512, PORTABLE_INFO) == most
    assert build_flags.unused(AMX, PORTABLE_INFO) == [*most, "amx_int8"]
    assert build_flags.unused(AVX512, AVX512_INFO) == []
    assert build_flags.unused(AMX, AVX512_INFO) == ["amx_int8"]
    assert build_flags.unused(AMX - {"amx_tile"}, AVX512_INFO) == [], "half of AMX cannot be used"
    assert build_flags.unused(AMX, f"{AVX512_INFO}AMX_INT8 = 1 | ") == []
    assert build_flags.unused(frozenset({"avx2"}), PORTABLE_INFO) == []


# ---- what the compiler needs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("without", "cured", "cure"),
    [
        pytest.param(DROPPED, KEPT, "-fno-dse", id="gcc 12.2"),
        pytest.param(NAMED, KEPT, "-fno-dse", id="gcc 12.2 with debugging symbols"),
        pytest.param(KEPT, KEPT, "", id="a newer gcc"),
        pytest.param(CLANG, None, "", id="clang, which refuses the flag"),
        pytest.param(KEPT.replace("localsim_rows", "other"), KEPT, "-fno-dse", id="only the columns survive"),
        pytest.param(None, None, None, id="too old for AMX"),
        pytest.param(DROPPED, DROPPED, None, id="the flag does not help"),
        pytest.param(DROPPED, None, None, id="needs the flag and refuses it"),
    ],
)
def test_the_assembly_says_what_a_compiler_needs(
    tmp_path: Path, without: str | None, cured: str | None, cure: str | None
) -> None:
    compiler = plant(tmp_path, without, cured)
    assert build_flags.amx_cure((str(compiler),)) == cure
    assert all("-O3 -mamx-tile" in line for line in calls(compiler)[:1])


@pytest.mark.parametrize(
    ("version", "cure"),
    [
        (GCC_12_2, "-fno-dse"),
        ("g++ (GCC) 13.1.0\nCopyright (C) 2023 Free Software Foundation, Inc.\n", "-fno-dse"),
        ("g++ (GCC) 14.1.0\nCopyright (C) 2024 Free Software Foundation, Inc.\n", ""),
        ("g++ (GCC) 8.5.0 20210514\nCopyright (C) 2018 Free Software Foundation, Inc.\n", None),
        ("Debian clang version 14.0.6\nTarget: x86_64-pc-linux-gnu\n", ""),
        ("", "-fno-dse"),
        ("tcc version 0.9\n", "-fno-dse"),
    ],
)
def test_a_compiler_that_fails_is_asked_for_its_version(tmp_path: Path, version: str, cure: str | None) -> None:
    compiler = plant(tmp_path, None, None, otherwise=False, version=version)
    assert build_flags.amx_cure((str(compiler),)) == cure


def test_without_an_answer_the_flag_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert build_flags.amx_cure(()) == "-fno-dse"
    assert build_flags.amx_cure((str(tmp_path / "gone"),)) == "-fno-dse"
    waits = plant(tmp_path, KEPT, KEPT)
    waits.write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(build_flags, "_ENOUGH_S", 0.2)
    assert build_flags.amx_cure((str(waits),)) == "-fno-dse"


def test_arguments_and_own_flags_reach_the_compiler(tmp_path: Path) -> None:
    compiler = plant(tmp_path, DROPPED, KEPT)
    assert build_flags.amx_cure((str(compiler), "g++"), ("-march=znver4", "-fno-dse")) == "", "the user cured it"
    assert calls(compiler)[0].startswith("g++ -march=znver4 -fno-dse -O3 ")


_STORES = re.compile(r"\t(mov\w+)\s+[^,]+, (-?\d+)\(%rsp\)")
_SIZES = {"movb": 1, "movw": 2, "movl": 4, "movq": 8}


def stored(assembly: str) -> int:
    """How many of the 64 bytes of the configuration on the stack are stored before it is loaded."""
    before, found, after = assembly.partition("ldtilecfg")
    assert found
    begin = int(after.split("(")[0])
    reached = {
        int(offset) + byte - begin for name, offset in _STORES.findall(before) for byte in range(_SIZES.get(name, 16))
    }
    return len(reached & set(range(64)))


def test_the_compiler_of_this_machine(tmp_path: Path) -> None:
    """Its answer, beside the assembly of a configuration that is filled as llama.cpp fills it."""
    compiler = build_flags.compiler(os.environ)
    about = subprocess.run([*compiler, "--version"], capture_output=True, text=True).stdout if compiler else ""
    if not re.search(r"\) (11\.3|12\.2)\.0", about):
        pytest.skip("only gcc 11.3 and 12.2 are known to need the flag")
    assert build_flags.amx_cure(compiler) == "-fno-dse"
    source = tmp_path / "llama.cpp"
    fills = " ".join(f"tc.rows[{i}] = 16; tc.colsb[{i}] = {32 if i in (2, 3) else 64};" for i in range(8))
    source.write_text(
        "#include <cstdint>\n#include <immintrin.h>\nstruct config { uint8_t palette_id = 0, start_row = 0, "
        "reserved[14] = {0}; uint16_t colsb[16] = {0}; uint8_t rows[16] = {0}; };\n"
        "void fill() { config tc; tc.palette_id = 1; " + fills + " _tile_loadconfig(&tc); }\n"
    )
    command = [*compiler, "-O3", "-mamx-tile", "-S", "-o", "-", str(source)]
    plain, cured = (
        subprocess.run([*command, *more], capture_output=True, text=True, check=True).stdout
        for more in ([], ["-fno-dse"])
    )
    assert stored(plain) <= 24 and stored(cured) == 64
    assert build_flags.amx_cure(compiler, ("-g",)) == "-fno-dse", "symbols are not taken for stores"
    assert build_flags.amx_cure(compiler, ("-fno-dse",)) == ""


# ---- which compiler ------------------------------------------------------------------------------------------------


def programs(folder: Path, *names: str) -> str:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return str(folder)


def test_the_compiler_that_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = programs(tmp_path / "bin", "c++", "g++", "ccache", "my compiler")

    def found(**environment: str) -> list[str]:
        return [Path(word).name for word in build_flags.compiler({"PATH": path, **environment})]

    assert found(CXX="g++") == found(CXX=f"{path}/g++") == ["g++"]
    assert found(CXX="ccache g++ -m64") == ["ccache", "g++", "-m64"]
    assert found(CXX=f"{path}/my compiler") == ["my compiler"]
    assert found(CXX="gone") == found(CXX="gone g++") == [], "cmake takes no other, either"
    assert found(CXX="c++", CMAKE_ARGS="-DX=1 -DCMAKE_CXX_COMPILER=g++") == ["g++"]
    assert found(CXX="c++", CMAKE_ARGS="-D CMAKE_CXX_COMPILER:FILEPATH=g++") == ["g++"]
    python_was_built_with = {"g++ -pthread": ["g++"], "ccache g++ -arch x86_64": ["ccache", "g++"], "gone": ["c++"]}
    for name, taken in {**python_was_built_with, None: ["c++"]}.items():
        monkeypatch.setattr("sysconfig.get_config_var", {"CXX": name}.get)
        assert found() == found(CXX="") == taken
    assert build_flags.compiler({"PATH": str(tmp_path)}) == ()


# ---- the user's own flags --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "cured", "plain"),
    [
        ({}, f"-DA=1 {CURED}", "-DA=1"),
        ({"CXXFLAGS": "-g"}, "-DA=1 '-DCMAKE_CXX_FLAGS=-g -fno-dse'", "-DA=1"),
        ({"CXXFLAGS": '-DX="a b"'}, """-DA=1 '-DCMAKE_CXX_FLAGS=-DX="a b" -fno-dse'""", "-DA=1"),
        ({"CMAKE_ARGS": "-DB=2"}, f"-DA=1 -DB=2 {CURED}", "-DA=1 -DB=2"),
        ({"CMAKE_ARGS": "-DB='2 3'"}, f"-DA=1 '-DB=2 3' {CURED}", "-DA=1 '-DB=2 3'"),
        (
            {"CMAKE_ARGS": "-DCMAKE_CXX_FLAGS=-Og -DB=2", "CXXFLAGS": "-g"},
            "-DA=1 -DB=2 '-DCMAKE_CXX_FLAGS=-Og -fno-dse'",
            "-DA=1 -DCMAKE_CXX_FLAGS=-Og -DB=2",
        ),
        (
            {"CMAKE_ARGS": "-D CMAKE_CXX_FLAGS:STRING='-Og -g'"},
            "-DA=1 '-DCMAKE_CXX_FLAGS=-Og -g -fno-dse'",
            "-DA=1 '-DCMAKE_CXX_FLAGS:STRING=-Og -g'",
        ),
        ({"CMAKE_ARGS": "-DB=it's"}, f"""-DA=1 '-DB=it'"'"'s' {CURED}""", """-DA=1 '-DB=it'"'"'s'"""),
    ],
)
def test_the_users_flags_are_kept(environment: dict[str, str], cured: str, plain: str) -> None:
    assert build_flags.joined(f"-DA=1 {CURED}", environment) == cured
    assert build_flags.joined("-DA=1", environment) == plain
    assert shlex.split(cured)[0] == "-DA=1" and cured.count("-DCMAKE_CXX_FLAGS") == 1


# ---- a whole machine -------------------------------------------------------------------------------------------------


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A processor with AMX; the compiler is to be planted in the folder that is returned."""
    for name in ("CXXFLAGS", "CMAKE_ARGS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(build_flags, "processor_features", lambda: AMX)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    folder = tmp_path / "compilers"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("CXX", "c++")
    return folder


def test_flags_of_a_machine_follow_its_compiler(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(machine, DROPPED, KEPT)
    assert build_flags.here()[0].endswith(f"AMX_BF16=ON {CURED}")
    monkeypatch.setenv("CXXFLAGS", "-g")
    assert build_flags.here()[0].endswith("AMX_BF16=ON '-DCMAKE_CXX_FLAGS=-g -fno-dse'")
    assert calls(machine / "c++")[-1].startswith("-g -fno-dse -O3 "), "the trial has them, too"
    other = plant(machine / "other", CLANG, None)
    monkeypatch.setenv("CXX", f"env {other}")
    assert build_flags.here()[0].endswith("AMX_BF16=ON"), "CXXFLAGS reach cmake by themselves"
    monkeypatch.setenv("CXX", str(plant(machine / "old", None, None)))
    assert build_flags.here() == build_flags.candidates(AVX512, "x86_64")


def test_without_amx_no_compiler_is_asked(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(machine, DROPPED, KEPT)
    monkeypatch.setattr(build_flags, "processor_features", lambda: AVX512)
    assert build_flags.here() == build_flags.candidates(AVX512, "x86_64") and not (machine / "calls").exists()


def test_doctor_names_unused_amx_and_the_build_for_this_compiler(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = f"llama-cpp-python 0.3.36; {AVX512_INFO}"
    plant(machine, DROPPED, KEPT)
    found = build_finding(build)
    assert found.ok and found.value == "works, but does not use amx_int8"
    assert f'AMX_INT8=ON -DGGML_AMX_BF16=ON {CURED}" pip install' in found.advice
    monkeypatch.setenv("CXX", str(plant(machine / "other", CLANG, None)))
    assert "AMX_INT8=ON" in build_finding(build).advice and "dse" not in build_finding(build).advice
    monkeypatch.setenv("CMAKE_ARGS", "-DCMAKE_INSTALL_RPATH='$ORIGIN'")
    command = re.search(r"CMAKE_ARGS=(\".+\") pip", build_finding(build).advice)
    assert command
    seen = subprocess.run(["sh", "-c", f"printf %s {command[1]}"], capture_output=True, text=True).stdout
    assert "-DCMAKE_INSTALL_RPATH=$ORIGIN" in shlex.split(seen), "the command can be pasted into a shell"
    assert build_finding(f"{build}AMX_INT8 = 1 | ").advice == ""


def test_doctor_says_that_a_compiler_is_too_old_for_amx(machine: Path) -> None:
    plant(machine, None, None)
    only = build_finding(f"llama-cpp-python 0.3.36; {AVX512_INFO}")
    assert "does not use amx_int8; the C++ compiler cannot compile for AMX" in only.value
    assert "newer compiler" in only.advice and "CMAKE_ARGS" not in only.advice
    more = build_finding(f"llama-cpp-python 0.3.36; {PORTABLE_INFO}")
    assert "cannot compile for AMX" in more.value and "AVX512=ON" in more.advice and "AMX" not in more.advice
