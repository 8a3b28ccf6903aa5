/**
 * Returns `node:http` without its ES module wrapper. The wrapper evaluates every export, including `fetch`, which takes
 * 20 ms of a 100 ms command.
 */
export const nodeHttp = (): typeof import('node:http') => process.getBuiltinModule('node:http');
