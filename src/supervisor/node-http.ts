/**
 * Loads `node:http` without its ES module wrapper, which evaluates every export, including Node's fetch: 20 ms of a command
 * that should take 100 ms.
 */
export const nodeHttp = (): typeof import('node:http') => process.getBuiltinModule('node:http');
