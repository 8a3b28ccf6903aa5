import { readFileSync } from 'node:fs';
import { startBenchGateway } from './bench-gateway.ts';

/** A gateway alone, on a folder and a port, that may be killed at any time: `gateway-process.ts <folder> <port> <token>`. */
const [folder, port, token] = process.argv.slice(2) as [string, string, string];

const config = JSON.parse(readFileSync(`${folder}/svc.config.json`, 'utf8')) as object;
await startBenchGateway({ folder, config, token, port: Number(port) });
process.stdout.write('ready\n');
