import { syncBuiltinESMExports } from 'node:module';
import process from 'node:process';
import { refusal, refused } from './refusal.ts';
import { guardVm } from './vm-guard.ts';

/**
 * Exports that write files, change V8's flags, read the memory of other tenants' calls, or reach other processes, and
 * that no permission flag covers in every supported Node. test/plugins/node-apis.test.ts attacks each.
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
  // It parses bytes in native code that trusts them.
  'node:perf_hooks': ['importHistogram'],
  'node:trace_events': ['createTracing'],
};
const DENIED_ON_STARTUP_SNAPSHOT = [
  'addSerializeCallback',
  'addDeserializeCallback',
  'setDeserializeMainFunction',
];

/** Exit code of a crash of V8 itself; `abort` would leave a core file with the process's memory. */
const ABORT_EXIT_CODE = 134;
/** `module.constants.compileCacheStatus.DISABLED` */
const COMPILE_CACHE_DISABLED = 3;

/**
 * Closes the gaps of Node's permission model before plugin code loads. Every property is set on the one object that
 * imports, `require` and `getBuiltinModule` share, and cannot be set again. A seat belt: the kernel sandbox is the
 * wall. @spec docs/security.md
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
  // A cache read from a folder that the plugin may write to is bytecode that V8 does not verify.
  const message = 'The compile cache is not available to plugins.';
  lock(builtin('node:module'), 'enableCompileCache', () => ({ status: COMPILE_CACHE_DISABLED, message }));
  // Not a refusal: packages test for it before they read a report.
  lock(process, 'report', undefined);
  lock(process, 'abort', () => process.exit(ABORT_EXIT_CODE));
  syncBuiltinESMExports();
}

function denyExports(module: string, names: readonly string[]): void {
  const exports = builtin(module);
  const label = module.slice('node:'.length);
  for (const name of names) if (name in exports) lock(exports, name, refusal(`${label}.${name}`));
}

/** The exports of a built-in module; none where this Node was built without it. */
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
  for (const name of ['kill', '_kill'] as const) {
    const original = raw[name].bind(process);
    lock(process, name, (pid: number, signal?: unknown) => {
      // 0 and negative ids mean process groups, the daemon's among them.
      if (pid !== self) throw refused(`process.kill of any other process`);
      return original(pid, signal);
    });
  }
}

/** `importHistogram` is reachable a second time, from the native handle of any histogram. */
function guardHistogram(): void {
  const { createHistogram } = builtin('node:perf_hooks') as { createHistogram?: () => object };
  const histogram = createHistogram?.() as Record<symbol, unknown> | undefined;
  if (!histogram) return;
  for (const symbol of Object.getOwnPropertySymbols(histogram)) {
    const native = (histogram[symbol] as object | null)?.constructor;
    if (native && 'import' in native) lock(native, 'import', refusal('perf_hooks.importHistogram'));
  }
}

/** Sets a property for good; a getter, which the property may be now, goes. */
export function lock(target: object, name: string, value: unknown): void {
  if (typeof value === 'function') Object.freeze(value);
  const enumerable = Object.getOwnPropertyDescriptor(target, name)?.enumerable ?? true;
  Object.defineProperty(target, name, { value, writable: false, configurable: false, enumerable });
}
