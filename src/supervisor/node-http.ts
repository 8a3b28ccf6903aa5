/** Returns `node:http` without its ES module wrapper. The wrapper evaluates every export, which takes 20 ms. */
export const nodeHttp = (): typeof import('node:http') => process.getBuiltinModule('node:http');
