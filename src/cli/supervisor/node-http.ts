/**
 * `node:http` without its face as an ES module: building that reads every export, one of which loads the whole
 * of Node's fetch (20 ms of a command that should take 100).
 */
export const nodeHttp = (): typeof import('node:http') => process.getBuiltinModule('node:http');
