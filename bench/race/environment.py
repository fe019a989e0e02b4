"""The Python environments of the race, below build/race: one for the rivals, one for them with less of the processor, one for
onnx2tf. Standard library only."""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

from cap import patch

HERE = pathlib.Path(__file__).resolve().parent
WORK = HERE.parent.parent / 'build' / 'race'
VENV = WORK / 'venv'
ONNX2TF = WORK / 'onnx2tf'
MINIMUM_OF_ONNX2TF = (3, 12)

# One thread for numpy's own products, and none of the libraries that report on their use to their makers.
VARIABLES = {'OPENBLAS_NUM_THREADS': '1', 'NNCF_CI': '1', 'CI': '1', 'TF_CPP_MIN_LOG_LEVEL': '3',
             'PYTHONDONTWRITEBYTECODE': '1'}


def requirements(name):
    lines = (HERE / name).read_text().splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith('#')]


def python_for_onnx2tf():
    """An interpreter that onnx2tf accepts, or None."""
    found = [sys.executable, *(shutil.which(f'python3.{minor}') for minor in (12, 13))]
    found += sorted(map(str, pathlib.Path.home().glob('.pyenv/versions/3.1[23].*/bin/python3')))
    return next((path for path in found if path and version_of(path) >= MINIMUM_OF_ONNX2TF), None)


def version_of(python):
    """The version of an interpreter; (0, 0) for a program that cannot run, such as a launcher without one."""
    done = subprocess.run([python, '-c', 'import sys; print(*sys.version_info[:2])'], capture_output=True, text=True)
    return tuple(map(int, done.stdout.split())) if done.returncode == 0 else (0, 0)


def make(folder, python, wanted, options=()):
    """Installs what is not yet there; the reasons of what could not be installed, by requirement."""
    stamp = folder / 'installed.json'
    key = hashlib.sha256('\n'.join([python, *wanted]).encode()).hexdigest()
    if stamp.exists() and (state := json.loads(stamp.read_text()))['key'] == key:
        return state['failed']
    print(f'installing {len(wanted)} packages into {folder}', flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([python, '-m', 'venv', folder], check=True)
    failed = {}
    for one in wanted:
        name, *flags = one.split()
        done = subprocess.run([folder / 'bin/python', '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', *flags,
                               *options, name], capture_output=True, text=True)
        if done.returncode:
            failed[name] = (done.stderr.strip().splitlines() or ['pip failed'])[-1][:200]
            print(f'{name}: {failed[name]}', flush=True)
    # It would report each conversion to its makers.
    subprocess.run([folder / 'bin/python', '-m', 'pip', 'uninstall', '--quiet', '--yes', 'openvino-telemetry'],
                   capture_output=True)
    stamp.write_text(json.dumps(dict(key=key, failed=failed)))
    return failed


def prepare():
    """Makes both environments; the reasons of what could not be installed, by requirement."""
    WORK.mkdir(parents=True, exist_ok=True)
    wanted = requirements('requirements.txt')
    failed = make(VENV, sys.executable, [*wanted, *(one + ' --no-deps' for one in requirements('requirements-pnnx.txt'))],
                  ('--constraint', HERE / 'requirements.txt'))
    python = python_for_onnx2tf()
    if python is None:
        return failed | {requirements('requirements-onnx2tf.txt')[0]: 'needs Python 3.12, which is not installed'}
    return failed | make(ONNX2TF, python, requirements('requirements-onnx2tf.txt'))


def capped(cap):
    """Makes the environment in which the rivals find what a `cap` machine has: its folder, and the variables to start it with."""
    folder = WORK / f'venv-{cap}'
    patch.environment(VENV, folder)
    return folder, dict(patch.VARIABLES, LD_PRELOAD=str(patch.answerer(folder)), SINTER_CPU_CAP=cap)


def enter(cap=None):
    """Restarts the program in the environment of the rivals, with `cap` in the capped one, unless it runs in one already."""
    os.environ.update(VARIABLES)
    if pathlib.Path(sys.prefix) == (WORK / f'venv-{cap}' if cap else VENV):
        return
    failed = prepare()
    os.environ['SINTER_RACE_NOT_INSTALLED'] = json.dumps(failed)
    folder, variables = capped(cap) if cap else (VENV, {})
    os.environ.update(variables)
    os.execv(folder / 'bin/python', [str(folder / 'bin/python'), *sys.argv])


def not_installed():
    return json.loads(os.environ.get('SINTER_RACE_NOT_INSTALLED', '{}'))
