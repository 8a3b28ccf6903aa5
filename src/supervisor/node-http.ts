/**
 * Returns `node:http` without its ES module wrapper. The wrapper evaluates every export, including Node's fetch, which
 * takes 20 ms of a command that should take 100 ms.
 */
export const nodeHttp = (): typeof import('node:http') => process.getBuiltinModule('node:http');
