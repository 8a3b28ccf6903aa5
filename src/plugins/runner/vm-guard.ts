import vm from 'node:vm';
import { refused } from './refusal.ts';

type Options = Record<string, unknown>;
type Lock = (target: object, name: string, value: unknown) => void;

// `Reflect.construct` is saved before plugin code runs, because plugin code could replace this function.
const { construct } = Reflect;

/**
 * Rejects `cachedData` in calls of `node:vm`, because V8 runs cached bytecode without verification. The wrappers call
 * no function that plugin code can replace.
 */
export function guardVm(lock: Lock): void {
  const { Script: Original, createScript, compileFunction } = vm as unknown as VmFunctions;
  const { runInContext, runInNewContext, runInThisContext } = vm as unknown as VmFunctions;

  // `Script` is a plain function. A subclass or a Proxy would expose the original class to plugin code.
  function Script(code: unknown, options: unknown): object {
    if (new.target === undefined)
      throw new TypeError("Class constructor Script cannot be invoked without 'new'");
    return construct(Original, [code, withoutCache(options)], new.target);
  }
  lock(Script, 'prototype', Original.prototype);
  lock(Original.prototype, 'constructor', Script);
  // The native superclass of `vm.Script` also accepts `cachedData`, so plugin code must not reach its constructor.
  lock(Object.getPrototypeOf(Original.prototype), 'constructor', Script);
  lock(vm, 'Script', Script);
  lock(vm, 'createScript', (code: unknown, options: unknown) => createScript(code, withoutCache(options)));
  lock(vm, 'runInThisContext', (code: unknown, options: unknown) =>
    runInThisContext(code, withoutCache(options)),
  );
  lock(vm, 'runInContext', (code: unknown, context: unknown, options: unknown) =>
    runInContext(code, context, withoutCache(options)),
  );
  lock(vm, 'runInNewContext', (code: unknown, context: unknown, options: unknown) =>
    runInNewContext(code, context, withoutCache(options)),
  );
  lock(vm, 'compileFunction', (code: unknown, parameters: unknown, options: unknown) =>
    compileFunction(code, parameters, withoutCache(options)),
  );
}

interface VmFunctions {
  Script: new (...args: unknown[]) => object;
  createScript(code: unknown, options: unknown): object;
  runInThisContext(code: unknown, options: unknown): unknown;
  runInContext(code: unknown, context: unknown, options: unknown): unknown;
  runInNewContext(code: unknown, context: unknown, options: unknown): unknown;
  compileFunction(code: unknown, parameters: unknown, options: unknown): unknown;
}

/**
 * Copies the options. Throws if `cachedData` is set. The copy protects against getters that return another value on the
 * second read.
 */
function withoutCache(given: unknown): Options {
  const options = copyOf(asObject(given));
  if (options.cachedData !== undefined) throw refused('cachedData of node:vm');
  return options;
}

function asObject(given: unknown): Options {
  if (typeof given === 'string') return { __proto__: null, filename: given } as Options;
  if (given === undefined) return { __proto__: null } as Options;
  if (typeof given === 'object' && given !== null) return given as Options;
  throw new TypeError('The "options" argument must be a string or an object.');
}

/** Copies the options. Each property is read only once, because a getter could return another value later. */
function copyOf(given: Options): Options {
  return {
    __proto__: null,
    filename: given.filename,
    lineOffset: given.lineOffset,
    columnOffset: given.columnOffset,
    cachedData: given.cachedData,
    produceCachedData: given.produceCachedData,
    importModuleDynamically: given.importModuleDynamically,
    parsingContext: given.parsingContext,
    contextExtensions: given.contextExtensions,
    displayErrors: given.displayErrors,
    timeout: given.timeout,
    breakOnSigint: given.breakOnSigint,
    contextName: given.contextName,
    contextOrigin: given.contextOrigin,
    contextCodeGeneration: given.contextCodeGeneration,
    microtaskMode: given.microtaskMode,
  } as Options;
}
