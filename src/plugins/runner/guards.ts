import { syncBuiltinESMExports } from 'node:module';
import process from 'node:process';
import { KILL_METHODS, nativeClassesIn } from '../../kit/process/node-internals.ts';
import { refusal, refused } from './refusal.ts';
import { guardVm } from './vm-guard.ts';

/**
 * Exports of built-in modules that plugins must not use. These exports write files, set V8 flags, read memory of other
 * tenants' calls or reach other processes. Node's permission flags do not deny all of these exports.
 */
const DENIED: Record<string, readonly string[]> = {
  'node:v8': [
    'setFlagsFromString',
    'startCpuProfile',
    'startHeapProfile',
    'getHeapSnapshot',
    'writeHeapSnapshot',
    'setHeapSnapshotNearHeapLimit',
    'setHeapProfileNearHeapLimit',
    'takeCoverage',
    'stopCoverage',
    'queryObjects',
  ],
  'node:process': [
    '_debugProcess',
    '_debugEnd',
    '_startProfilerIdleNotifier',
    '_stopProfilerIdleNotifier',
    'binding',
    '_linkedBinding',
    'dlopen',
    'execve',
    'initgroups',
    'setegid',
    'seteuid',
    'setgid',
    'setgroups',
    'setuid',
  ],
  'node:module': ['register'],
  'node:os': ['setPriority'],
  // `importHistogram` is denied because the function parses untrusted bytes in native code without validation.
  'node:perf_hooks': ['importHistogram'],
  'node:trace_events': ['createTracing'],
};
const DENIED_ON_STARTUP_SNAPSHOT = [
  'addSerializeCallback',
  'addDeserializeCallback',
  'setDeserializeMainFunction',
];

/** Exit code of an aborted process. A real `abort` would leave a core file with the memory of the process. */
const ABORT_EXIT_CODE = 134;
/** Value of `module.constants.compileCacheStatus.DISABLED`. */
const COMPILE_CACHE_DISABLED = 3;

/**
 * Closes gaps in Node's permission model before plugin code loads. The guards are a second line of defence, because the
 * kernel sandbox is the security boundary. @spec docs/security.md
 */
export function installGuards(): void {
  for (const [module, names] of Object.entries(DENIED)) denyExports(module, names);
  guardKill();
  guardHistogram();
  guardVm(lock);
  const { startupSnapshot } = builtin('node:v8') as { startupSnapshot?: object };
  if (startupSnapshot)
    for (const name of DENIED_ON_STARTUP_SNAPSHOT)
      lock(startupSnapshot, name, refusal(`v8.startupSnapshot.${name}`));
  // V8 does not verify cached bytecode. The compile cache is disabled, because the plugin could write to the cache
  // folder.
  const message = 'The compile cache is not available to plugins.';
  lock(builtin('node:module'), 'enableCompileCache', () => ({ status: COMPILE_CACHE_DISABLED, message }));
  // `process.report` becomes undefined instead of a function that throws, because packages check whether the property
  // exists.
  lock(process, 'report', undefined);
  lock(process, 'abort', () => process.exit(ABORT_EXIT_CODE));
  syncBuiltinESMExports();
}

function denyExports(module: string, names: readonly string[]): void {
  const exports = builtin(module);
  const label = module.slice('node:'.length);
  for (const name of names) if (name in exports) lock(exports, name, refusal(`${label}.${name}`));
}

/** Returns the exports of a built-in module. Returns an empty object if this Node was built without the module. */
function builtin(module: string): object {
  try {
    return process.getBuiltinModule(module) ?? {};
  } catch {
    return {};
  }
}

function guardKill(): void {
  const self = process.pid;
  const raw = process as unknown as Record<'kill' | '_kill', (pid: number, signal?: unknown) => unknown>;
  for (const name of KILL_METHODS) {
    const original = raw[name].bind(process);
    lock(process, name, (pid: number, signal?: unknown) => {
      // Only the process's own pid is allowed. A pid of 0 or below would signal a process group, such as the service's
      // group.
      if (pid !== self) throw refused(`process.kill of any other process`);
      return original(pid, signal);
    });
  }
}

/** Denies `importHistogram` on the native histogram class too, because plugin code can reach the function there. */
function guardHistogram(): void {
  const { createHistogram } = builtin('node:perf_hooks') as { createHistogram?: () => object };
  const natives = createHistogram ? nativeClassesIn(createHistogram()) : [];
  for (const native of natives)
    if ('import' in native) lock(native, 'import', refusal('perf_hooks.importHistogram'));
}

/** Sets a property and makes the property read-only and non-configurable. Replaces a getter by `value`. */
export function lock(target: object, name: string, value: unknown): void {
  if (typeof value === 'function') Object.freeze(value);
  const enumerable = Object.getOwnPropertyDescriptor(target, name)?.enumerable ?? true;
  Object.defineProperty(target, name, { value, writable: false, configurable: false, enumerable });
}
