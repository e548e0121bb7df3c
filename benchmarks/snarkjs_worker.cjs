// snarkjs kept running: node snarkjs_worker.cjs PATH/TO/snarkjs/build/main.cjs
// One JSON object a line in, one out, as worker.py. Key and witness are given to it in memory.
const fs = require("fs");
const readline = require("readline");
const snarkjs = require(process.argv[2]);

let key, witness;

const operations = {
  async load({ key: keyPath, witness: witnessPath }) {
    const start = performance.now();
    key = new Uint8Array(fs.readFileSync(keyPath));
    witness = new Uint8Array(fs.readFileSync(witnessPath));
    return { seconds: (performance.now() - start) / 1000 };
  },
  async prove() {
    const cpu = process.cpuUsage();
    const start = performance.now();
    await snarkjs.groth16.prove(key, witness);
    const seconds = (performance.now() - start) / 1000;
    const used = process.cpuUsage(cpu);
    return { seconds, cpu: (used.user + used.system) / 1e6 };
  },
};

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { op, ...request } = JSON.parse(line);
    let answer;
    try {
      answer = await operations[op](request);
    } catch (error) {
      answer = { error: String(error) };
    }
    process.stdout.write(JSON.stringify(answer) + "\n");
  }
  process.exit(0);
})();
